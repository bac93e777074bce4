"""One branch of a session as a session of its own."""

from collections.abc import Callable, Mapping, Sequence

from features.contracts.sessions import LabelEntry, SessionEntry, SessionHeader, SessionLines
from features.sessions.codec import decode_entry, encode
from features.sessions.json_line import changed, json_text

__all__ = ["forked_lines"]

_SHORT_ID_CHARS = 8


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
    taken = set()
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
        label = LabelEntry(id=_fresh(ids, taken), parent_id=parent, timestamp=header.timestamp, target_id=target, label=labels[target])
        kept.append(encode(label))
        taken.add(label.id)
        parent = label.id
    return SessionLines(header=encode(header), entries=kept, leaf=parent)


def _fresh(ids: Callable[[], str], taken: set[str]) -> str:
    while True:
        full = ids()
        for found in (full[-_SHORT_ID_CHARS:], full):
            if found not in taken:
                return found
