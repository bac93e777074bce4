"""The summary as it is stored: the model's notes, and behind them what is kept by us word for word."""

from collections.abc import Sequence

from features.compaction.preparation import FileOperations

__all__ = ["notes_of", "summary_text"]

_KEPT = "kept-word-for-word"
_TAGS = ("read-files", "modified-files", _KEPT)


def summary_text(notes: str, files: FileOperations, keep: Sequence[str] = ()) -> str:
    """Notes, the files that were read and changed (the form of pi's sessions), and texts that no model may reword."""
    parts = [notes.strip()]
    if files.read:
        parts.append(_section("read-files", "\n".join(files.read)))
    if files.modified:
        parts.append(_section("modified-files", "\n".join(files.modified)))
    if keep:
        parts.append(_section(_KEPT, "\n\n".join(text.replace(f"</{_KEPT}", f"< /{_KEPT}") for text in keep)))
    return "\n\n".join(parts)


def notes_of(summary: str) -> str:
    """The notes alone; what stands behind them is put there anew each time, as it is by then."""
    summary = summary.strip()
    while (tag := next((tag for tag in _TAGS if summary.endswith(f"</{tag}>")), None)) is not None:
        begin = summary.rfind(f"<{tag}>\n")
        if begin < 0:
            break
        summary = summary[:begin].strip()
    return summary


def _section(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>"
