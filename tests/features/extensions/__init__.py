"""Tests of the extensions slice."""
