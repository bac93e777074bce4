"""What is odd about a session and harms nothing."""

from collections.abc import Sequence

from features.contracts.sessions import CompactionEntry, LabelEntry, SessionEntry, UnknownEntry

__all__ = ["many", "remarks"]


def remarks(entries: Sequence[SessionEntry]) -> list[str]:
    """Sentences for a person."""
    ids = {entry.id for entry in entries}
    found: list[str] = []
    if unknown := sum(isinstance(entry, UnknownEntry) for entry in entries):
        found.append(f"{many(unknown, 'entry', 'entries')} of a kind or form that is not known here: kept, but not read by the model.")
    if stray := sum(entry.parent_id is not None and entry.parent_id not in ids for entry in entries):
        found.append(f"{many(stray, 'entry', 'entries')} of which what came before is not there.")
    if labels := sum(isinstance(entry, LabelEntry) and entry.target_id not in ids for entry in entries):
        found.append(f"{many(labels, 'label', 'labels')} of an entry that is not there.")
    if kept := sum(isinstance(entry, CompactionEntry) and entry.first_kept_entry_id not in ids for entry in entries):
        found.append(f"{many(kept, 'compaction', 'compactions')} that kept nothing of what is there.")
    return found


def many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
