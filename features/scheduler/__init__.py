"""Prompts that start on their own, at a time or on a rhythm."""
