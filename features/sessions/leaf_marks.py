"""How a session file says where the conversation goes on.

pi goes on behind the last entry of a file. Where that is another place, the file's last line is an entry of ours that hangs there: pi takes
it for some extension's state and goes on behind it, and so the model reads the same.
"""

import hashlib
from collections.abc import Container, Mapping, Sequence

import msgspec

from features.contracts.sessions import CustomEntry, SessionEntry

__all__ = ["is_leaf_mark", "leaf_mark", "leaf_of", "without_marks"]

_KIND = "pumice.leaf"
_ID_CHARS = 8


def leaf_mark(leaf: str | None, taken: Container[str], timestamp: str) -> CustomEntry:
    """The entry that makes ``leaf`` the place where a file goes on. Its id depends on nothing but what is there already."""
    number = 0
    while True:
        entry_id = hashlib.sha256(f"{leaf} {number}".encode()).hexdigest()[:_ID_CHARS]
        if entry_id not in taken:
            return CustomEntry(id=entry_id, parent_id=leaf, timestamp=timestamp, custom_type=_KIND)
        number += 1


def is_leaf_mark(entry: SessionEntry) -> bool:
    return isinstance(entry, CustomEntry) and entry.custom_type == _KIND


def leaf_of(entries: Sequence[SessionEntry]) -> str | None:
    """Where a file with these entries goes on."""
    if not entries:
        return None
    last = entries[-1]
    if not is_leaf_mark(last):
        return last.id
    return _beyond_marks(last.parent_id, _marks(entries))


def without_marks(entries: Sequence[SessionEntry]) -> list[SessionEntry]:
    """The entries that were appended; what another program hung onto a mark hangs where the mark does."""
    marks = _marks(entries)
    if not marks:
        return list(entries)
    return [
        msgspec.structs.replace(entry, parent_id=_beyond_marks(entry.parent_id, marks)) if entry.parent_id in marks else entry
        for entry in entries
        if entry.id not in marks
    ]


def _marks(entries: Sequence[SessionEntry]) -> dict[str, str | None]:
    return {entry.id: entry.parent_id for entry in entries if is_leaf_mark(entry)}


def _beyond_marks(entry_id: str | None, marks: Mapping[str, str | None]) -> str | None:
    passed: set[str] = set()
    while entry_id is not None and entry_id in marks and entry_id not in passed:
        passed.add(entry_id)
        entry_id = marks[entry_id]
    return entry_id
