"""Text as it may leave for a model: no lone surrogates, nothing blank, a time in front of what a person said."""

import re
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

__all__ = ["legal_text", "legal_value", "stamp", "zone"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def legal_text(text: str) -> str:
    """``text`` without lone surrogates, which no service can decode; a split pair becomes its character again."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")


def legal_value(value: Any) -> Any:
    """A JSON value whose texts and keys are all legal; the same object where nothing had to change."""
    if isinstance(value, str):
        return legal_text(value)
    if isinstance(value, list):
        items = [legal_value(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        pairs = {legal_text(str(key)): legal_value(item) for key, item in value.items()}
        same = len(pairs) == len(value) and all(pairs.get(key, pairs) is item for key, item in value.items())
        return value if same else pairs
    return value


def zone(name: str) -> tzinfo:
    """The zone, or UTC for a name that this machine does not know."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return UTC


def stamp(timestamp: int, time_zone: tzinfo) -> str:
    """The line that goes before a person's text, or nothing for a message that has no time.

    Args:
        timestamp: Unix ms; 0 says that the time is not known.
    """
    if timestamp == 0:
        return ""
    try:
        at = datetime.fromtimestamp(timestamp / 1000, time_zone)
    except (OverflowError, ValueError, OSError):  # an imported session may hold any number
        return ""
    return f"[{at.year:04d}-{at.month:02d}-{at.day:02d} {_DAYS[at.weekday()]} {at.hour:02d}:{at.minute:02d}]\n"
