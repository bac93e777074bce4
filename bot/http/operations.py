"""An operation of the API: one entry makes both the route and its place in the OpenAPI document."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["Handler", "Operation", "Parameter", "routes"]

Handler = Callable[[Request], Awaitable[Response]]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    place: str = "query"
    kind: str = "string"


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """``takes`` and ``gives`` are the types of the bodies, None where there is none; ``media`` is what the answer is written in.

    A part ``{address}`` of ``path`` may hold slashes.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    takes: Any = None
    gives: Any = None
    status: int = 200
    public: bool = False
    media: str = "application/json"
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[int, ...] = ()


def routes(operations: Iterable[Operation]) -> list[Route]:
    return [
        Route(operation.path.replace("{address}", "{address:path}"), operation.handler, methods=[operation.method])
        for operation in operations
    ]
