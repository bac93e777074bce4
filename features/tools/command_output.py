"""What a command writes: its end for the model, all of it in a file."""

import os
from pathlib import Path
from typing import BinaryIO

from features.tools.truncation import Truncation, size_text, truncate_tail

__all__ = ["CommandOutput"]

_MAX_FILE_BYTES = 64 * 1024 * 1024


class CommandOutput:
    """Keeps the end in memory, at most twice what a result may hold, and writes everything to a file once a result cannot hold it.

    Args:
        path: where the file goes, readable by the host's user alone; nothing is written while the output is short.
    """

    def __init__(self, path: Path, *, max_bytes: int, max_lines: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._max_lines = max_lines
        self._tail = ""
        self._bytes = 0
        self._line_ends = 0
        self._last_line_bytes = 0
        self._line_before_bytes = 0
        self._file: BinaryIO | None = None
        self._file_bytes = 0
        self._file_problem: str | None = None

    def add(self, text: str) -> None:
        if not text:
            return
        encoded = text.encode("utf-8", "replace")
        self._bytes += len(encoded)
        self._count_lines(encoded)
        kept = self._tail + text
        if self._file is None and self._file_problem is None and self._is_beyond_result:
            self._open()
            self._save(kept.encode("utf-8", "replace"))
        elif self._file is not None:
            self._save(encoded)
        # One more than a result holds, beside a line end that does not count: a line whose beginning is gone must never fit as a whole.
        self._tail = kept if len(kept) <= 2 * self._max_bytes else kept[-self._max_bytes - 2 :]

    def tail(self) -> str:
        """The end, as progress shows it."""
        return truncate_tail(self._tail, max_lines=self._max_lines, max_bytes=self._max_bytes).content

    def finish(self) -> tuple[str, Truncation]:
        """The text of the result and its figures; the file is closed."""
        self.close()
        cut = truncate_tail(self._tail, max_lines=self._max_lines, max_bytes=self._max_bytes)
        total = self._total_lines
        truncated = total > cut.output_lines or cut.last_line_partial
        figures = Truncation(
            content=cut.content,
            truncated_by=("lines" if cut.output_lines >= self._max_lines else "bytes") if truncated else None,
            total_lines=total,
            total_bytes=self._bytes,
            output_lines=cut.output_lines,
            output_bytes=cut.output_bytes,
            max_lines=self._max_lines,
            max_bytes=self._max_bytes,
            last_line_partial=cut.last_line_partial,
        )
        text = cut.content if self._tail.strip() else "(no output)"
        return (f"{text}\n\n{self._notice(figures)}" if truncated else text), figures

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def _is_beyond_result(self) -> bool:
        return self._bytes > self._max_bytes or self._total_lines > self._max_lines

    @property
    def _total_lines(self) -> int:
        return self._line_ends + (1 if self._last_line_bytes else 0)

    def _count_lines(self, encoded: bytes) -> None:
        ends = encoded.count(b"\n")
        self._line_ends += ends
        if not ends:
            self._last_line_bytes += len(encoded)
            return
        head, *_, last = lines = encoded.split(b"\n")
        self._line_before_bytes = len(lines[-2]) if ends > 1 else self._last_line_bytes + len(head)
        self._last_line_bytes = len(last)

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = os.fdopen(os.open(self._path, flags, 0o600), "wb")
        except OSError as problem:
            self._file_problem = problem.strerror or str(problem)

    def _save(self, encoded: bytes) -> None:
        if self._file is None or self._file_bytes >= _MAX_FILE_BYTES:
            return
        piece = encoded[: _MAX_FILE_BYTES - self._file_bytes]
        try:
            self._file.write(piece)
            self._file.flush()
        except OSError as problem:
            self._file_problem = problem.strerror or str(problem)
            self._file.close()
            self._file = None
        self._file_bytes += len(piece)

    def _notice(self, figures: Truncation) -> str:
        if figures.last_line_partial:
            line = self._last_line_bytes or self._line_before_bytes
            shown = size_text(figures.output_bytes)
            return f"[Showing last {shown} of line {figures.total_lines} (line is {size_text(line)}). {self._where()}]"
        first = figures.total_lines - figures.output_lines + 1
        because = f" ({size_text(self._max_bytes)} limit)" if figures.truncated_by == "bytes" else ""
        return f"[Showing lines {first}-{figures.total_lines} of {figures.total_lines}{because}. {self._where()}]"

    def _where(self) -> str:
        if self._file_problem is not None:
            return f"The full output could not be kept: {self._file_problem}"
        if self._bytes > _MAX_FILE_BYTES:
            return f"Full output, its first {size_text(_MAX_FILE_BYTES)}: {self._path}"
        return f"Full output: {self._path}"
