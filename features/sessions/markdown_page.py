"""The present branch of a session as Markdown."""

import re
from collections.abc import Mapping, Sequence

from features.contracts.sessions import SessionEntry, SessionHeader
from features.sessions.readable import Part, Passage, passage

__all__ = ["markdown_page"]

_TICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def markdown_page(title: str, header: SessionHeader, branch: Sequence[SessionEntry], labels: Mapping[str, str]) -> str:
    passages = [found for entry in branch if (found := passage(entry, labels)) is not None]
    head = f"# {_plain(title)}\n\nSession `{header.id}`, begun {header.timestamp[:16].replace('T', ' ')} UTC"
    return "\n\n".join([head, *(_passage(one) for one in passages)]) + "\n"


def _passage(one: Passage) -> str:
    heading = f"**{_plain(one.note)}**" if one.note else f"## {_plain(one.who)}"
    label = f" [{_plain(one.label)}]" if one.label else ""
    return "\n\n".join([f"{heading}{label} ({one.when})" if one.when else heading + label, *(_part(part) for part in one.parts)])


def _part(part: Part) -> str:
    match part.kind:
        case "text":
            return part.text
        case "thinking":
            return "\n".join(f"> {line}" for line in part.text.splitlines()) or "> (thought)"
        case "image":
            return f"*(picture, {_plain(part.about)})*"
        case "failure":
            return f"**Failed:**\n\n{_fenced(part.text)}"
        case "call":
            return f"Calls `{part.about}`:\n\n{_fenced(part.text, 'json')}"
        case _:
            return _fenced(part.text)


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks in it."""
    fence = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(text)), 0)
    return f"{fence}{language}\n{text}\n{fence}"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
