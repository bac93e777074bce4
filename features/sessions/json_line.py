"""Changes to a line of JSON that leave every other character as it is."""

import json
import re
from collections.abc import Iterator, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

__all__ = ["DROP", "changed", "json_text", "member"]

DROP = object()
"""In place of a value: the member is taken out."""

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


class _Member(NamedTuple):
    """A member of an object and where its value stands."""

    key: str
    start: int
    value_start: int
    end: int


def member(line: str, key: str) -> str | None:
    """The text of a member of the line's object as it is written; the last of that name, as every reader takes it."""
    found = None
    for one in _members(line):
        if one.key == key:
            found = line[one.value_start : one.end]
    return found


def changed(line: str, changes: Mapping[str, str | object]) -> str:
    """The line with members set to other JSON texts; what is not there yet is added at the end.

    Raises:
        ValueError: the line is no JSON object.
    """
    kept: list[str] = []
    missing = dict(changes)
    for one in _members(line):
        if one.key not in changes:
            kept.append(line[one.start : one.end])
        elif (value := missing.pop(one.key, DROP)) is not DROP:
            kept.append(line[one.start : one.value_start] + str(value))
    kept += [f"{json_text(key)}:{value}" for key, value in missing.items() if value is not DROP]
    return "{" + ",".join(kept) + "}"


def json_text(value: Any) -> str:
    """JSON as pi writes it: no blanks, text as it is, lone surrogates escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def _members(line: str) -> Iterator[_Member]:
    at = _skip(line, 0)
    if line[at : at + 1] != "{":
        raise ValueError("no JSON object")
    at = _skip(line, at + 1)
    while line[at : at + 1] != "}":
        start = at
        if line[at : at + 1] != '"':
            raise ValueError(f"no name at {at}")
        key, at = scanstring(line, at + 1, True)
        at = _skip(line, at)
        if line[at : at + 1] != ":":
            raise ValueError(f"no value at {at}")
        value_start = _skip(line, at + 1)
        _, end = _decoder.raw_decode(line, value_start)
        yield _Member(key, start, value_start, end)
        at = _skip(line, end)
        if line[at : at + 1] == ",":
            at = _skip(line, at + 1)
        elif line[at : at + 1] != "}":
            raise ValueError(f"no end at {at}")


def _skip(line: str, at: int) -> int:
    space = _SPACE.match(line, at)
    assert space is not None
    return space.end()
