"""The notes in a memory file: each item of its list, with what is indented below it. What stands around the list is left alone."""

import re
from hashlib import sha256

import msgspec

__all__ = ["Note", "find_notes", "note_key", "with_note", "without"]

_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
_KEY_LENGTH = 8


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """``first`` and ``end`` are line numbers, ``end`` one behind the last; ``text`` is without the list's sign, on one line."""

    first: int
    end: int
    text: str


def find_notes(content: str) -> list[Note]:
    lines = content.split("\n")
    notes: list[Note] = []
    number = 0
    while number < len(lines):
        if not _BULLET.match(lines[number]):
            number += 1
            continue
        end = number + 1
        while end < len(lines) and lines[end].strip() and lines[end].startswith(("  ", "\t")) and not _BULLET.match(lines[end]):
            end += 1
        text = " ".join(_BULLET.sub("", "\n".join(lines[number:end]), count=1).split())
        notes.append(Note(first=number, end=end, text=text))
        number = end
    return notes


def note_key(text: str) -> str:
    """Names a note in a button, so that one which has changed since is not meant."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_KEY_LENGTH]


def with_note(content: str, text: str, instead: Note | None = None) -> str:
    """The content with one more note at its end, or one in the place of another, which keeps its sign."""
    if instead is not None:
        lines = content.split("\n")
        sign = _BULLET.match(lines[instead.first])
        assert sign is not None
        lines[instead.first : instead.end] = [f"{sign[0]}{text}"]
        return "\n".join(lines)
    kept = content.rstrip() or "# Memory"
    notes = find_notes(kept)
    goes_on = bool(notes) and notes[-1].end == kept.count("\n") + 1
    return f"{kept}\n{'' if goes_on else chr(10)}- {text}\n"


def without(content: str, note: Note) -> str:
    lines = content.split("\n")
    del lines[note.first : note.end]
    return "\n".join(lines)
