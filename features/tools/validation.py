"""Arguments of a tool call against the tool's JSON Schema."""

import json
from typing import TYPE_CHECKING, Any

from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.tools.coercion import coerced

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ["ArgumentValidator"]

_MAX_ERRORS = 20
_MAX_MESSAGE_CHARS = 300
_MAX_RECEIVED_CHARS = 4000


class ArgumentValidator:
    """Made when a tool is first called. A schema that cannot be used closes the tool instead of letting anything through."""

    def __init__(self, spec: ToolSpec) -> None:
        import jsonschema_rs

        self._spec = spec
        try:
            self._validator = jsonschema_rs.validator_for(spec.parameters, offline=True)
        except (ValueError, jsonschema_rs.ReferencingError) as problem:
            reason = str(problem).partition("\n")[0]
            raise ModelMustAct(f"tool {spec.name!r} cannot be used: its own schema is broken ({reason})") from problem

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        candidate: dict[str, Any] = coerced(arguments, self._spec.parameters)
        errors = [_line(error) for error in self._validator.iter_errors(_searchable(candidate))]
        if not errors:
            return candidate
        if len(errors) > _MAX_ERRORS:
            errors = [*errors[:_MAX_ERRORS], f"  - ... and {len(errors) - _MAX_ERRORS} more"]
        received = _cut(json.dumps(arguments, indent=2, ensure_ascii=False), _MAX_RECEIVED_CHARS)
        raise ModelMustAct("\n".join([f'Validation failed for tool "{self._spec.name}":', *errors, "", "Received arguments:", received]))


def _line(error: "ValidationError") -> str:
    kind = error.kind.as_dict()
    missing = kind.get("property") if error.kind.name == "required" else None
    steps = [str(step) for step in error.instance_path] + ([str(missing)] if missing is not None else [])
    return f"  - {'/'.join(steps) or 'root'}: {_cut(error.message, _MAX_MESSAGE_CHARS)}"


def _searchable(value: Any) -> Any:
    """Without halves of characters, which the validator cannot take; only where there are any."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... [truncated]"
