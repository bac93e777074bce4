"""Slack's control sequences back to what people typed."""

import re
from collections.abc import Mapping

__all__ = ["mentioned", "readable"]

_SEQUENCE = re.compile(r"<([^<>\n]*)>")
_USER = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^>]*)?>")
_BANG = re.compile(r"!([a-z][a-z0-9_-]*)(?=\s|$)")
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def mentioned(text: str) -> list[str]:
    """The ids of the people whom a text names."""
    return _USER.findall(text)


def readable(text: str, *, me: str, names: Mapping[str, str]) -> str:
    """A text as the person saw it while typing.

    People become ``@name``, channels ``#name``, links ``label (address)``; escapes are undone. The bot's own mention is taken away where
    the text begins or ends with it, and ``!command`` at the beginning becomes ``/command``.

    Args:
        me: the bot's id.
        names: the names of ``mentioned(text)``.
    """
    own = rf"<@{re.escape(me)}(?:\|[^>]*)?>"
    bare = re.sub(rf"^\s*{own}[\s,:]*|\s*{own}\s*$", "", text)
    shown = _SEQUENCE.sub(lambda found: _shown(found[1], names), bare)
    for escape, character in _ESCAPES:
        shown = shown.replace(escape, character)
    return _BANG.sub(r"/\1", shown, count=1) if _BANG.match(shown) else shown


def _shown(sequence: str, names: Mapping[str, str]) -> str:
    target, _, label = sequence.partition("|")
    match target[:1]:
        case "@":
            return f"@{names.get(target[1:]) or label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            return label or "@" + target[1:].partition("^")[0]
        case _:
            address = target.removeprefix("mailto:")
            return address if label in ("", address, target) else f"{label} ({target})"
