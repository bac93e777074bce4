"""Types and values in words for people."""

from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from bot.config.values import Secret, SecretOrText

__all__ = ["shown", "wanted"]

_LONGEST_VALUE = 80
_PLAIN: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    Path: "a path in quotes",
    Secret: "a reference to a secret: env:NAME, file:PATH or credential:NAME",
    SecretOrText: "a text in quotes",
}


def shown(value: Any) -> str:
    """A found value as TOML would write it, cut where it is long."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, dict):
        text = "a table"
    elif isinstance(value, list):
        text = "a list"
    elif isinstance(value, int | float | str):
        text = repr(value)
    else:
        text = str(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def wanted(kind: Any) -> str:
    """What a value of this type looks like."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return wanted(next(option for option in arguments if option is not NoneType))
    if origin is Annotated:
        return wanted(arguments[0]) + _bounds(arguments[1:])
    if origin is Literal:
        return "one of " + ", ".join(repr(choice) for choice in arguments)
    if origin is tuple:
        return f"a list, each item {wanted(arguments[0])}"
    if origin is dict or kind not in _PLAIN:
        return "a table"
    return _PLAIN[kind]


def _bounds(metas: tuple[Any, ...]) -> str:
    for meta in metas:
        if isinstance(meta, msgspec.Meta) and meta.ge is not None:
            return f" from {meta.ge} to {meta.le}" if meta.le is not None else f" of at least {meta.ge}"
    return ""
