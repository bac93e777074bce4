"""A session as the lines of its file."""

from collections.abc import Sequence
from datetime import datetime

from features.contracts.sessions import SessionEntry, SessionLines
from features.sessions.codec import decode_entry, decode_header
from features.sessions.timestamps import iso_time

__all__ = ["began_at", "entries_of"]


def entries_of(lines: SessionLines) -> list[SessionEntry]:
    """The entry of each line.

    Raises:
        ValueError: the lines are no session: one cannot be read, an id comes twice, or the leaf is not there.
    """
    entries: list[SessionEntry] = []
    ids: set[str] = set()
    for number, line in enumerate(lines.entries, 1):
        entry = decode_entry(line)
        if entry is None:
            raise ValueError(f"entry {number} cannot be read")
        if entry.id in ids:
            raise ValueError(f"entry {entry.id} is there already")
        entries.append(entry)
        ids.add(entry.id)
    if lines.leaf is not None and lines.leaf not in ids:
        raise ValueError(f"the leaf {lines.leaf} is not there")
    return entries


def began_at(header_line: str, entries: Sequence[SessionEntry]) -> datetime:
    """When the session began: what its header says, else its first entry that says when, else the beginning of time."""
    header = decode_header(header_line)
    for told in ([] if header is None else [header.timestamp]) + [entry.timestamp for entry in entries]:
        try:
            return iso_time(told)
        except (ValueError, OverflowError):
            continue
    return iso_time("1970-01-01")
