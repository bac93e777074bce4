"""The kinds of values beyond TOML's own."""

from typing import Annotated, Literal

import msgspec

__all__ = [
    "Count",
    "Policy",
    "Port",
    "PositiveCount",
    "Seconds",
    "Secret",
    "SecretOrText",
]

Count = Annotated[int, msgspec.Meta(ge=0)]
PositiveCount = Annotated[int, msgspec.Meta(ge=1)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Policy = Literal["allow", "ask", "deny"]


class Secret(str):
    """A resolved secret. It is the plain text; only its ``repr`` hides it, so that no dump of a configuration shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'[REDACTED]'"


class SecretOrText(str):
    """A text that may be a reference to a secret; one that is none of these is plain text."""

    __slots__ = ()
