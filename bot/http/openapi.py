"""The OpenAPI document, made from the operations themselves."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from bot.http.answers import ErrorText
from bot.http.operations import Operation

__all__ = ["openapi_document"]

_REFERENCE = "#/components/schemas/{name}"


def openapi_document(operations: Sequence[Operation], *, version: str) -> dict[str, Any]:
    """OpenAPI 3.1 for all operations."""
    shapes = [shape for operation in operations for shape in (operation.takes, operation.gives) if shape is not None]
    _, schemas = msgspec.json.schema_components([*shapes, ErrorText], ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pumice",
            "version": version,
            "description": "The API of a chat-agent host. {address} is a chat's address; its slashes may be plain or percent-encoded.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "http.token in the data directory"}},
        },
        "security": [{"token": []}],
    }


def _describe(operation: Operation) -> dict[str, Any]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in re.findall(r"{(\w+)}", operation.path)
    ]
    others = [
        {"name": p.name, "in": p.place, "required": False, "description": p.description, "schema": {"type": p.kind}}
        for p in operation.parameters
    ]
    errors = sorted({*operation.errors} | (set() if operation.public else {401}))
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _identifier(operation),
        "parameters": in_path + others,
        "responses": {str(operation.status): _success(operation)} | {str(status): _error(operation, status) for status in errors},
    }
    if operation.takes is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.takes)}
    if operation.public:
        described["security"] = []
    return described


def _identifier(operation: Operation) -> str:
    words = re.findall(r"\w+", operation.path)
    return "_".join([operation.method.lower(), *words])


def _success(operation: Operation) -> dict[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.gives is not None:
        response["content"] = _content(operation.gives)
    elif operation.media != "application/json":
        response["content"] = {operation.media: {"schema": {"type": "string"}}}
    return response


def _error(operation: Operation, status: int) -> dict[str, Any]:
    # /readyz answers 503 with the health itself
    shape = operation.gives if status == 503 and operation.public else ErrorText
    return {"description": HTTPStatus(status).phrase, "content": _content(shape)}


def _content(shape: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
    return {"application/json": {"schema": schema}}
