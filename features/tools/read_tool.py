"""The ``read`` tool: text by lines, images as images."""

from typing import Literal

from features.contracts.errors import ModelMustAct
from features.contracts.messages import TextBlock
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.tools.background import Stop, in_thread
from features.tools.files import Located, WorkspaceFiles
from features.tools.images import MAX_IMAGE_BYTES, fit_image, image_type
from features.tools.text_lines import SNIFF_BYTES, lines_of, looks_binary
from features.tools.truncation import Truncation, cut_end, size_text

__all__ = ["ReadTool"]

_COUNT_LIMIT_S = 5.0
"""Lines beyond the shown part are counted for so long."""
_BOM = b"\xef\xbb\xbf"


class ReadTool:
    """Implements ``features.contracts.tools.Tool``."""

    label = "Read"
    prompt_snippet = "read: show a text file or an image"
    prompt_guidelines: tuple[str, ...] = ("Look at a file with read instead of cat or sed.",)
    execution: Literal["parallel", "sequential"] = "parallel"

    def __init__(self, *, max_bytes: int, max_lines: int) -> None:
        self._max_bytes = max_bytes
        self._max_lines = max_lines
        self.spec = ToolSpec(
            name="read",
            description=(
                f"Show a file. Of a text you get at most {max_lines} lines or {size_text(max_bytes)}, whichever ends first; go on with offset. "
                "Images (PNG, JPEG, GIF, WebP) are shown as images."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File to show, relative to the workspace or absolute"},
                    "offset": {"type": "integer", "minimum": 1, "description": "First line to show, counted from 1"},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to show at most"},
                },
                "required": ["path"],
            },
        )

    async def run(self, call: ToolInvocation) -> ToolResult:
        return await in_thread(lambda stop: self._read(call, stop), limit_s=_COUNT_LIMIT_S)

    def _read(self, call: ToolInvocation, stop: Stop) -> ToolResult:
        files = WorkspaceFiles(call.context)
        located = files.locate(call.arguments["path"])
        with files.open_file(located) as (file, size):
            head = file.read(SNIFF_BYTES)
            file.seek(0)
            if (mime_type := image_type(head)) is not None:
                if size > MAX_IMAGE_BYTES:
                    raise ModelMustAct(f"{located.written} is an image of {size_text(size)}; at most {size_text(MAX_IMAGE_BYTES)} can be read")
                image = fit_image(file.read(), mime_type, located.written)
                text = f"Read image file [{image.block.mime_type}]" + (f"\n{image.note}" if image.note else "")
                return ToolResult(content=[TextBlock(text=text), image.block])
            if looks_binary(head):
                raise ModelMustAct(_binary_text(located, head, size))
            if head.startswith(_BOM):
                file.seek(len(_BOM))
            window = _Window(call.arguments.get("offset", 1), call.arguments.get("limit"), self._max_lines, self._max_bytes)
            for line, line_size in lines_of(file, longest=self._max_bytes):
                stop.check()
                window.take(line, line_size)
                if stop.expired and window.is_full:
                    window.counted_all = False
                    break
        return window.result(located)


class _Window:
    """The lines from ``offset`` on that fit, and the count of all."""

    def __init__(self, offset: int, limit: int | None, max_lines: int, max_bytes: int) -> None:
        self.counted_all = True
        self.is_full = False
        self._offset = offset
        self._wanted = max_lines if limit is None else min(limit, max_lines)
        self._limited_by_caller = limit is not None and limit <= max_lines
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._lines: list[str] = []
        self._size = 0
        self._total = 0
        self._total_bytes = 0
        self._bytes_ran_out = False
        self._long_first_line: int | None = None

    def take(self, line: bytes, size: int) -> None:
        self._total += 1
        self._total_bytes += size + 1
        if self.is_full or self._total < self._offset:
            return
        text = line.decode("utf-8", "replace")
        further = len(text.encode()) + (1 if self._lines else 0)
        if size > self._max_bytes or self._size + further > self._max_bytes:
            self.is_full = self._bytes_ran_out = True
            if not self._lines:
                self._long_first_line = max(size, len(text.encode()))
                self._lines.append(cut_end(text, self._max_bytes))
                self._size = len(self._lines[0].encode())
            return
        self._lines.append(text)
        self._size += further
        self.is_full = len(self._lines) >= self._wanted

    def result(self, located: Located) -> ToolResult:
        if self._offset > self._total:
            if self._total == 0 and self._offset == 1:
                return text_result(f"({located.written} is empty)")
            raise ModelMustAct(f"Offset {self._offset} is beyond end of file ({self._total} lines total)")
        last = self._offset + len(self._lines) - 1
        text = "\n".join(self._lines)
        if last >= self._total and not self._bytes_ran_out and self.counted_all:
            return text_result(text or "(an empty line)")
        return text_result(f"{text}\n\n{self._notice(located, last)}", details=None if self._only_limited() else self._truncation(text).details())

    def _only_limited(self) -> bool:
        return self._limited_by_caller and not self._bytes_ran_out

    def _notice(self, located: Located, last: int) -> str:
        total = f"{self._total}" if self.counted_all else f"more than {self._total}"
        limit = size_text(self._max_bytes)
        if self._long_first_line is not None:
            command = f"sed -n '{self._offset}p' {located.written} | head -c {self._max_bytes}"
            return (
                f"[Line {self._offset} is {size_text(self._long_first_line)}, exceeds {limit} limit; its beginning is shown. "
                f"Use bash: {command}. The file has {total} lines.]"
            )
        if self._only_limited():
            more = self._total - last
            return f"[{more if self.counted_all else f'More than {more}'} more lines in file. Use offset={last + 1} to continue.]"
        because = f" ({limit} limit)" if self._bytes_ran_out else ""
        return f"[Showing lines {self._offset}-{last} of {total}{because}. Use offset={last + 1} to continue.]"

    def _truncation(self, text: str) -> Truncation:
        return Truncation(
            content=text,
            truncated_by="bytes" if self._bytes_ran_out else "lines",
            total_lines=self._total,
            total_bytes=self._total_bytes,
            output_lines=len(self._lines),
            output_bytes=self._size,
            max_lines=self._max_lines,
            max_bytes=self._max_bytes,
            first_line_exceeds_limit=self._long_first_line is not None,
        )


def _binary_text(located: Located, head: bytes, size: int) -> str:
    import filetype  # type: ignore[import-untyped]  # it has no types of its own

    guessed = filetype.guess_mime(head) or "of unknown type"
    return f"{located.written} is a binary file ({guessed}, {size_text(size)}); read shows text and images (PNG, JPEG, GIF, WebP) only"
