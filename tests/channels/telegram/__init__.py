"""Tests of the Telegram channel, against a loopback double of the Bot API."""
