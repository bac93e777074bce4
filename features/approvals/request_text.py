"""A call as a person is asked about it."""

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["request_text"]

_LONGEST = 3000
_LONGEST_NAME = 60


def request_text(tool: str, arguments: Mapping[str, Any], *, always: str = "") -> str:
    """The question in Markdown. What it is about stands in a code block, with nothing in it that looks like something else.

    Args:
        always: what is said about an answer that holds for good.
    """
    command = arguments.get("command") if tool == "bash" else None
    if isinstance(command, str):
        title, body = "May I run this command?", _visible(command)
        others = {name: value for name, value in arguments.items() if name != "command"}
        if others:
            body += "\n\n" + _listed(others)
    else:
        title, body = f"May I use {_name(tool)}?", _listed(arguments)
    shown, left_out = _cut(body)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", shown)), 3)
    parts = [title, f"{fence}\n{shown}\n{fence}" if shown else "", left_out, always]
    return "\n\n".join(part for part in parts if part)


def _listed(arguments: Mapping[str, Any]) -> str:
    lines = []
    for name, value in arguments.items():
        text = _visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        lines.append(f"{_visible(name)}:\n{text}" if "\n" in text else f"{_visible(name)}: {text}")
    return "\n".join(lines)


def _visible(text: str) -> str:
    """Characters that hide or turn around what stands beside them, as their escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _cut(body: str) -> tuple[str, str]:
    if len(body) <= _LONGEST:
        return body, ""
    half = _LONGEST // 2
    left_out = f"**{len(body) - 2 * half:,} characters in the middle are not shown here.**"
    return f"{body[:half]}\n[…]\n{body[-half:]}", left_out


def _name(tool: str) -> str:
    return "`" + _visible(tool).replace("`", "'")[:_LONGEST_NAME] + "`"
