"""Cuts a streaming answer into Markdown blocks, so that a terminal prints each once, formatted."""

import re

__all__ = ["BlockSplitter"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class BlockSplitter:
    """Feed it pieces; it gives back blocks that are complete. Fenced code is one block however many blank lines it holds."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._fence = ""

    @property
    def last_line(self) -> str:
        """The line that is being written."""
        return "".join(self._line)

    def feed(self, piece: str) -> list[str]:
        """The blocks that this piece completes."""
        found: list[str] = []
        first, *others = piece.split("\n")
        self._line.append(first)
        for start in others:
            found += self._end_line()
            self._line = [start]
        return found

    def finish(self) -> str:
        """What is left; begins anew."""
        rest = "\n".join([*self._lines, "".join(self._line)])
        self._lines, self._line, self._fence = [], [], ""
        return rest.strip("\n")

    def _end_line(self) -> list[str]:
        line = "".join(self._line)
        fence = _FENCE.match(line)
        if self._fence:
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
        elif fence:
            self._fence = fence[1]
        if line.strip() or self._fence:
            self._lines.append(line)
            return []
        block = "\n".join(self._lines)
        self._lines = []
        return [block] if block else []
