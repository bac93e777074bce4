"""Tables as lines of equal columns, for a typeface of one width."""

from collections.abc import Sequence
from itertools import zip_longest
from unicodedata import combining, east_asian_width

__all__ = ["aligned", "display_width"]


def display_width(text: str) -> int:
    """Columns that a text takes: Chinese, Japanese, Korean and emoji take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) or each in "\u200d\ufe0f" else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def aligned(rows: Sequence[Sequence[str]], alignments: Sequence[str]) -> str:
    """Lay out rows, the first being the header.

    Args:
        alignments: ``left``, ``right``, ``center`` or nothing, per column.
    """
    widths = [max(display_width(cell) for cell in column) for column in zip_longest(*rows, fillvalue="")]
    sides = [*alignments, *[""] * len(widths)]
    lines = [" │ ".join(map(_padded, row, widths, sides)) for row in _full(rows, len(widths))]
    lines.insert(1, "─┼─".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _full(rows: Sequence[Sequence[str]], columns: int) -> list[list[str]]:
    return [[*row, *[""] * (columns - len(row))] for row in rows]


def _padded(cell: str, width: int, side: str) -> str:
    missing = width - display_width(cell)
    if side == "right":
        return " " * missing + cell
    left = missing // 2 if side == "center" else 0
    return " " * left + cell + " " * (missing - left)
