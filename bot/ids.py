"""Ids that sort by the time they were made."""

import secrets
import time

__all__ = ["new_id"]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """A ULID in lower case: 48 bits of Unix milliseconds, then 80 random bits; 26 characters."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))
