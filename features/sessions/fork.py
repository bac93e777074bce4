"""One branch of a session as a session of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from features.contracts.sessions import LabelEntry, SessionEntry, SessionHeader, SessionLines
from features.sessions.codec import decode_entry, encode
from features.sessions.entry_ids import fresh_entry_id
from features.sessions.json_line import changed, json_text

__all__ = ["forked_lines"]


def forked_lines(
    header: SessionHeader, path: Sequence[SessionEntry], lines: SessionLines, labels: Mapping[str, str], *, ids: Callable[[], str]
) -> SessionLines:
    """The lines of a branch under a new header. Label entries are left out, and the names of what is kept stand at the end.

    Args:
        path: the branch, root first.
        lines: those of the whole session; what of them is kept is kept as it was written.
    """
    written = {entry.id: line for line in lines.entries if (entry := decode_entry(line)) is not None}
    kept: list[str] = []
    parent: str | None = None
    taken: set[str] = set()
    for entry in path:
        if isinstance(entry, LabelEntry):
            continue
        line = written.get(entry.id) or encode(entry)
        known = decode_entry(line)
        if known is None or known.parent_id != parent:
            line = changed(line, {"parentId": json_text(parent)})
        kept.append(line)
        taken.add(entry.id)
        parent = entry.id
    for target in [entry.id for entry in path if entry.id in taken and entry.id in labels]:
        place: dict[str, Any] = {"id": fresh_entry_id(ids, taken.__contains__), "parent_id": parent, "timestamp": header.timestamp}
        label = LabelEntry(target_id=target, label=labels[target], **place)
        kept.append(encode(label))
        taken.add(label.id)
        parent = label.id
    return SessionLines(header=encode(header), entries=kept, leaf=parent)
