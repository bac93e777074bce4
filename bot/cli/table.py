"""Printing what a command found."""

from collections.abc import Sequence
from typing import Any

import click

__all__ = ["print_json", "print_table"]

_WIDEST = 60


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Columns under a head; ``empty`` is said instead of a table without rows."""
    if not rows:
        click.echo(empty)
        return
    cells = [[_cell(text) for text in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _cell(text: str) -> str:
    """One line, and nothing that a terminal would obey: names come from strangers."""
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
