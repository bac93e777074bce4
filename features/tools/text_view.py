"""A text as it compares, with the way back to the text as it is."""

import re
import unicodedata
from bisect import bisect_right

__all__ = ["TextView", "exact_view", "fuzzy_view", "normalised"]

_CHARACTERS = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " ")
)
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


class TextView:
    """The compared text, and where each run of it stands in the original.

    A run is either copied character for character or stands for its original as a whole; a span may begin and end inside the former only.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._originals: list[tuple[int, int, bool]] = []
        self._length = 0
        self._text: str | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = "".join(self._parts)
        return self._text

    def add(self, text: str, start: int, end: int, *, copied: bool) -> None:
        """Append a run that stands for ``original[start:end]``."""
        if not text:
            return
        self._parts.append(text)
        self._starts.append(self._length)
        self._originals.append((start, end, copied))
        self._length += len(text)

    def occurrences(self, wanted: str) -> list[tuple[int, int]]:
        """Spans of the original that compare equal to ``wanted``, overlapping ones too."""
        found: list[tuple[int, int]] = []
        position = self.text.find(wanted)
        while position >= 0:
            start, end = self._start(position), self._end(position + len(wanted))
            if start is not None and end is not None:
                found.append((start, end))
            position = self.text.find(wanted, position + 1)
        return found

    def _start(self, position: int) -> int | None:
        run = bisect_right(self._starts, position) - 1
        start, _, copied = self._originals[run]
        inside = position - self._starts[run]
        return start + inside if copied or not inside else None

    def _end(self, position: int) -> int | None:
        run = bisect_right(self._starts, position - 1) - 1
        start, end, copied = self._originals[run]
        inside = position - self._starts[run]
        if inside == len(self._parts[run]):
            return end
        return start + inside if copied else None


def exact_view(original: str) -> TextView:
    """Line ends as LF, all else as it is."""
    view = TextView()
    for match in _LINE.finditer(original):
        line, ending = match.groups()
        view.add(line, match.start(1), match.end(1), copied=True)
        view.add("\n" if ending else "", match.start(2), match.end(2), copied=False)
    return view


def fuzzy_view(original: str) -> TextView:
    """As ``normalised``, and every character knows where it came from."""
    view = TextView()
    for match in _LINE.finditer(original):
        line, ending = match.groups()
        _add_line(view, line, match.start(1))
        view.add("\n" if ending else "", match.start(2), match.end(2), copied=False)
    return view


def normalised(text: str) -> str:
    """Compatibility forms composed, quotes, dashes and spaces as in ASCII, no white space before a line end."""
    return "\n".join(_normalised_line(line) for line in re.split(r"\r\n|\r|\n", text))


def _normalised_line(line: str) -> str:
    if line.isascii():
        return line.rstrip()
    return unicodedata.normalize("NFKC", line).rstrip().translate(_CHARACTERS).rstrip()


def _add_line(view: TextView, line: str, start: int) -> None:
    if line.isascii():
        kept = line.rstrip()
        view.add(kept, start, start + len(kept), copied=True)
        return
    wanted = _normalised_line(line)
    pieces = [(_plain(line[begin:end]), begin, end) for begin, end in _clusters(line)]
    if "".join(text for text, _, _ in pieces).rstrip() != wanted:
        view.add(wanted, start, start + len(line), copied=False)  # this script composes in ways of its own; the line can be matched as a whole
        return
    left = len(wanted)
    for text, begin, end in pieces:
        view.add(text[:left], start + begin, start + end, copied=False)
        left -= len(text[:left])


def _plain(cluster: str) -> str:
    return unicodedata.normalize("NFKC", cluster).translate(_CHARACTERS)


def _clusters(line: str) -> list[tuple[int, int]]:
    """Characters with the marks that follow them."""
    starts = [index for index, character in enumerate(line) if index == 0 or not unicodedata.combining(character)]
    return list(zip(starts, [*starts[1:], len(line)], strict=True))
