"""Ids of entries."""

from collections.abc import Callable

__all__ = ["fresh_entry_id"]

_SHORT_ID_CHARS = 8
_SHORT_ID_TRIES = 100


def fresh_entry_id(ids: Callable[[], str], is_taken: Callable[[str], bool]) -> str:
    """The random tail of an id, which is short to type; the whole id when tails keep colliding."""
    full = ids()
    for _ in range(_SHORT_ID_TRIES):
        short = full[-_SHORT_ID_CHARS:]
        if not is_taken(short):
            return short
        full = ids()
    return full
