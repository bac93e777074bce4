"""Other people's words inside our Markdown."""

import re
from collections.abc import Sequence

from features.contracts.chat import Button

__all__ = ["code", "in_rows", "one_line", "plain"]

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def plain(text: str, *, limit: int = 60) -> str:
    """A text of somebody's choice on one line, with nothing in it acting as markup."""
    return _SPECIAL.sub(r"\\\1", one_line(text, limit=limit))


def one_line(text: str, *, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def code(text: str) -> str:
    """A text as inline code."""
    return "`" + one_line(text, limit=120).replace("`", "'") + "`"


def in_rows(buttons: Sequence[Button], *, across: int) -> list[list[Button]]:
    return [list(buttons[start : start + across]) for start in range(0, len(buttons), across)]
