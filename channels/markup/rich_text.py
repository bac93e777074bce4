"""Text with marked ranges, and the platforms' way of counting.

They count UTF-16 code units, Python code points: a character beyond the basic plane (most emoji) is two units.
Ranges here are in code points; only what leaves or enters through the platform is in units.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

import msgspec

__all__ = ["Entity", "RichText", "Span", "characters_at", "clean", "units"]

_WIDE = re.compile("[\U00010000-\U0010ffff]")
_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Span(msgspec.Struct, frozen=True):
    """A marked range. ``kind`` is named as Telegram's entities are; ``value`` the address of a link or the language of code."""

    kind: str
    start: int
    end: int
    value: str = ""


class Entity(msgspec.Struct, frozen=True):
    """A span as Telegram takes it: ``offset`` and ``length`` in UTF-16 units."""

    kind: str
    offset: int
    length: int
    value: str = ""


class RichText(msgspec.Struct, frozen=True):
    """``spans`` are sorted by start, the longer first, and properly nested."""

    text: str
    spans: tuple[Span, ...] = ()

    def entities(self) -> list[Entity]:
        if not self.spans:
            return []
        if not _WIDE.search(self.text):
            return [Entity(span.kind, span.start, span.end - span.start, span.value) for span in self.spans]
        at = [0, *accumulate(2 if ord(character) > 0xFFFF else 1 for character in self.text)]
        return [Entity(span.kind, at[span.start], at[span.end] - at[span.start], span.value) for span in self.spans]

    def with_line_before(self, line: "RichText") -> "RichText":
        """The same text under a line of its own."""
        shift = len(line.text) + 2
        moved = (Span(span.kind, span.start + shift, span.end + shift, span.value) for span in self.spans)
        return RichText(f"{line.text}\n\n{self.text}", (*line.spans, *moved))

    def with_line_after(self, line: "RichText") -> "RichText":
        return line.with_line_before(self) if self.text else line


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text) + (0 if text.isascii() else len(_WIDE.findall(text)))


def characters_at(text: str, ranges: Sequence[tuple[int, int]]) -> list[str | None]:
    """What stands at ranges that are given in UTF-16 units.

    Args:
        ranges: offset and length; one that leaves the text or cuts a character in two gives None.
    """
    if not _WIDE.search(text):
        return [text[offset : offset + length] if _inside(offset, length, len(text)) else None for offset, length in ranges]
    encoded = text.encode("utf-16-le", "surrogatepass")
    found: list[str | None] = []
    for offset, length in ranges:
        piece = encoded[2 * offset : 2 * (offset + length)] if _inside(offset, length, len(encoded) // 2) else b""
        try:
            found.append(piece.decode("utf-16-le") or None)
        except UnicodeDecodeError:
            found.append(None)
    return found


def _inside(offset: int, length: int, end: int) -> bool:
    return offset >= 0 and length > 0 and offset + length <= end


def clean(text: str) -> str:
    """Without what platforms take out or cannot be sent: control characters and halves of characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _UNSENDABLE.sub("", text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
