"""Cutting a text to what a model is given at once. Sizes are UTF-8 bytes, lines end in LF."""

from typing import Any, Literal

import msgspec

__all__ = ["Truncation", "cut_end", "cut_start", "size_text", "truncate_head", "truncate_tail"]


class Truncation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was kept and why the rest was not. A line end that closes the text begins no further line.

    ``last_line_partial``, ``first_line_exceeds_limit``: the one line kept is itself cut, because it alone is beyond ``max_bytes``.
    """

    content: str
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    max_lines: int
    max_bytes: int
    last_line_partial: bool = False
    first_line_exceeds_limit: bool = False

    @property
    def truncated(self) -> bool:
        return self.truncated_by is not None

    def details(self) -> dict[str, Any]:
        """The figures without the text, as a result's ``details`` carry them."""
        figures: dict[str, Any] = msgspec.to_builtins(self)
        del figures["content"]
        return {"truncation": {"truncated": self.truncated, **figures}}


def truncate_head(text: str, *, max_lines: int, max_bytes: int) -> Truncation:
    """Keep whole lines from the beginning; of a first line that is too long, as much as fits."""
    lines = _lines(text)
    kept, size = _fitting(lines, max_lines, max_bytes)
    partial = not kept and bool(lines)
    content = cut_end(lines[0], max_bytes) if partial else "\n".join(lines[:kept])
    return _truncation(text, lines, content, kept, size, max_lines, max_bytes, first=partial)


def truncate_tail(text: str, *, max_lines: int, max_bytes: int) -> Truncation:
    """Keep whole lines from the end; of a last line that is too long, as much of its end as fits."""
    lines = _lines(text)
    kept, size = _fitting(lines[::-1], max_lines, max_bytes)
    partial = not kept and bool(lines)
    content = cut_start(lines[-1], max_bytes) if partial else "\n".join(lines[len(lines) - kept :])
    return _truncation(text, lines, content, kept, size, max_lines, max_bytes, last=partial)


def cut_end(text: str, max_bytes: int) -> str:
    """The beginning of a text, no character split."""
    return _encode(text)[:max_bytes].decode("utf-8", "ignore")


def cut_start(text: str, max_bytes: int) -> str:
    """The end of a text, no character split."""
    encoded = _encode(text)
    return encoded[max(0, len(encoded) - max_bytes) :].decode("utf-8", "ignore")


def size_text(size: int) -> str:
    """``512B``, ``50.0KB``, ``1.5MB``."""
    if size < 1024:
        return f"{size}B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f}KB"
    return f"{size / (1024 * 1024):.1f}MB"


def _lines(text: str) -> list[str]:
    if not text:
        return []
    return text.removesuffix("\n").split("\n")


def _fitting(lines: list[str], max_lines: int, max_bytes: int) -> tuple[int, int]:
    """How many of the first lines fit, and their size with the line ends between them."""
    size = 0
    for number, line in enumerate(lines[:max_lines]):
        further = len(_encode(line)) + (1 if number else 0)
        if size + further > max_bytes:
            return number, size
        size += further
    return min(len(lines), max_lines), size


def _truncation(
    text: str, lines: list[str], content: str, kept: int, size: int, max_lines: int, max_bytes: int, *, first: bool = False, last: bool = False
) -> Truncation:
    cut = kept < len(lines)
    return Truncation(
        content=content,
        truncated_by=("lines" if kept >= max_lines else "bytes") if cut else None,
        total_lines=len(lines),
        total_bytes=len(_encode(text)),
        output_lines=1 if first or last else kept,
        output_bytes=len(_encode(content)) if first or last else size,
        max_lines=max_lines,
        max_bytes=max_bytes,
        first_line_exceeds_limit=first,
        last_line_partial=last,
    )


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace") if text.isascii() else text.encode("utf-8", "surrogatepass")
