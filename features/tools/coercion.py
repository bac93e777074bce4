"""Values in the types a schema asks for, where a model nearly got them right."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["coerced"]

_INTEGER = re.compile(r"[+-]?\d{1,18}")
_MAX_DEPTH = 32

Schema = Mapping[str, Any]


def coerced(value: Any, schema: Schema) -> Any:
    """A deep copy of ``value``, changed where that makes it fit: ``"5"`` to 5, ``"true"`` to true, one value to a list of it, JSON in a
    string to what it says, null for an optional key to no key. What cannot be helped stays, for the validator to name.
    """
    return _Coercion(schema).value(value, schema, 0)


class _Coercion:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def value(self, value: Any, schema: Any, depth: int) -> Any:
        schema = self._resolved(schema)
        if depth > _MAX_DEPTH:
            return value
        schema = self._branch(value, schema)
        types = _types(schema)
        if types and not any(_IS[name](value) for name in types if name in _IS):
            value = _converted(value, types)
        if isinstance(value, float) and value.is_integer() and "integer" in types and "number" not in types:
            value = int(value)
        if isinstance(value, dict):
            return self._object(value, schema, depth)
        if isinstance(value, list):
            items = schema.get("items", {})
            return [self.value(item, items, depth + 1) for item in value]
        return value

    def _object(self, value: dict[str, Any], schema: Schema, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        drops_extras = schema.get("additionalProperties") is False and not schema.get("patternProperties")
        result: dict[str, Any] = {}
        for key, item in value.items():
            if key not in properties:
                if not drops_extras:
                    result[key] = self.value(item, {}, depth + 1)
            elif item is not None or key in required or self._takes_null(properties[key]):
                result[key] = self.value(item, properties[key], depth + 1)
        return result

    def _branch(self, value: Any, schema: Schema) -> Schema:
        """Of alternatives, the one whose type the value has, else the first that it can be brought to."""
        branches = [self._resolved(branch) for branch in schema.get("anyOf") or schema.get("oneOf") or ()]
        typed = [branch for branch in branches if _types(branch)]
        for branch in typed:
            if any(_IS[name](value) for name in _types(branch) if name in _IS):
                return branch
        for branch in typed:
            if _converted(value, _types(branch)) is not value:
                return branch
        return schema

    def _takes_null(self, schema: Any) -> bool:
        schema = self._resolved(schema)
        branches = schema.get("anyOf") or schema.get("oneOf") or ()
        return "null" in _types(schema) or any("null" in _types(self._resolved(branch)) for branch in branches)

    def _resolved(self, schema: Any) -> Schema:
        """The schema that a local reference points to."""
        for _ in range(_MAX_DEPTH):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            schema = self._root
            for step in reference[2:].split("/"):
                schema = schema.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(schema, Mapping) else {}
        return schema if isinstance(schema, Mapping) else {}


_IS: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer()),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _types(schema: Schema) -> tuple[str, ...]:
    named = schema.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _converted(value: Any, types: tuple[str, ...]) -> Any:
    """``value`` in the first of the types that it can be brought to, else itself."""
    for name in types:
        result = _convert_to(name, value)
        if result is not None:
            return result
    return value


def _convert_to(name: str, value: Any) -> Any:
    if isinstance(value, str):
        found = _from_text(name, value.strip())
        return [value] if found is None and name == "array" else found
    if name == "string" and isinstance(value, bool | int | float):
        return json.dumps(value)
    if name == "boolean" and value in (0, 1) and isinstance(value, int):
        return bool(value)
    if name == "array" and value is not None:
        return [value]
    return None


def _from_text(name: str, text: str) -> Any:
    match name:
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "number":
            return _number(text)
        case "boolean" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "array" | "object":
            parsed = _parsed(text)
            return parsed if _IS[name](parsed) else None
        case _:
            return None


def _number(text: str) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if number != number or number in (float("inf"), float("-inf")):
        return None
    return int(text) if _INTEGER.fullmatch(text) else number


def _parsed(text: str) -> Any:
    if not text.startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
