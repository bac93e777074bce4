"""Prompt templates: a text with places for arguments."""

import re
from collections.abc import Sequence

__all__ = ["expand", "split_arguments"]

_PLACE = re.compile(r"\$\{@:(?P<start>\d+)(?::(?P<count>\d+))?\}|\$(?P<number>\d+)|\$(?P<all>ARGUMENTS|@)")


def expand(template: str, arguments: Sequence[str]) -> str:
    """Put the arguments in: ``$1`` one of them, ``$@`` and ``$ARGUMENTS`` all, ``${@:2}`` from the second, ``${@:2:3}`` three from there.

    What an argument says is never expanded again; a place without an argument becomes empty.
    """
    everything = " ".join(arguments)

    def value(match: re.Match[str]) -> str:
        if match["all"]:
            return everything
        if match["number"]:
            number = int(match["number"])
            return arguments[number - 1] if 1 <= number <= len(arguments) else ""
        first = max(int(match["start"]) - 1, 0)
        last = first + int(match["count"]) if match["count"] is not None else None
        return " ".join(arguments[first:last])

    return _PLACE.sub(value, template)


def split_arguments(text: str) -> list[str]:
    """Split on white space; single or double quotes hold together, and there is no escape. Empty quotes give no argument."""
    arguments: list[str] = []
    current = ""
    quote = ""
    for char in text:
        if quote:
            if char == quote:
                quote = ""
            else:
                current += char
        elif char in "\"'":
            quote = char
        elif char in " \t\n":
            if current:
                arguments.append(current)
            current = ""
        else:
            current += char
    if current:
        arguments.append(current)
    return arguments
