"""What one look came to."""

from typing import Literal

import msgspec

__all__ = ["Finding", "good", "warning", "wrong"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``fix`` is what to do; empty where nothing is. Only ``wrong`` keeps the host from doing its work."""

    check: str
    state: Literal["ok", "warning", "wrong"]
    what: str
    fix: str = ""


def good(check: str, what: str) -> Finding:
    return Finding(check=check, state="ok", what=what)


def warning(check: str, what: str, fix: str) -> Finding:
    return Finding(check=check, state="warning", what=what, fix=fix)


def wrong(check: str, what: str, fix: str) -> Finding:
    return Finding(check=check, state="wrong", what=what, fix=fix)
