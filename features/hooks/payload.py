"""An event as plain data, small enough to hand around."""

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from pathlib import PurePath
from typing import Any

import msgspec

from features.contracts.extension_events import ExtensionEvent, ProcessSpawning
from features.contracts.messages import ImageBlock
from features.contracts.models import Model

__all__ = ["encoded", "facts_of", "plain"]

_MOST_ITEMS = 50
_MOST_DEPTH = 6
_MOST_VALUES = 2000
_LONGEST_TEXT = 2000
_LONGEST_BODY = 262_144
_LARGEST_NUMBER = 2**63


def plain(event: ExtensionEvent) -> dict[str, Any]:
    """What an event holds, as it is now: the event goes on changing. Texts are whole, so that a secret in one is still recognised."""
    if isinstance(event, ProcessSpawning):  # its environment's values are the child's business
        spawn = event.spawn
        fields: dict[str, Any] = {"argv": spawn.argv, "cwd": spawn.cwd, "environment": sorted(spawn.environment)}
        fields["purpose"] = spawn.request.purpose
    else:
        names = [*vars(event), *(name for name, member in vars(type(event)).items() if isinstance(member, property))]
        fields = {name: getattr(event, name) for name in names if not name.startswith("_")}
    read = _Plain().read(fields)
    assert isinstance(read, dict)
    return read


class _Plain:
    """Counts what it has read, so that an event of any size costs the same at most."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def read(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if isinstance(value, int) and abs(value) >= _LARGEST_NUMBER:
            return str(value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Model):
            return value.reference
        if isinstance(value, ImageBlock):
            return {"type": "image", "mimeType": value.mime_type, "base64Chars": len(value.data)}
        if isinstance(value, PurePath | datetime):
            return str(value)
        if depth == _MOST_DEPTH or self._left <= 0:
            return "..."
        if isinstance(value, msgspec.Struct):
            value = {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)} | _tag(value)
        if isinstance(value, Mapping):
            return {str(key): self.read(below, depth + 1) for key, below in list(value.items())[:_MOST_ITEMS]}
        if isinstance(value, Sequence | Set) and not isinstance(value, bytes):
            items = [self.read(below, depth + 1) for below in list(value)[-_MOST_ITEMS:]]
            return items if len(value) <= _MOST_ITEMS else [f"{len(value) - _MOST_ITEMS} earlier ones", *items]
        return f"<{type(value).__name__}>"


def _tag(value: msgspec.Struct) -> dict[str, Any]:
    config = value.__struct_config__
    return {config.tag_field: config.tag} if config.tag_field is not None else {}


def facts_of(data: Mapping[str, Any]) -> dict[str, str]:
    """What is worth a variable of its own, so that a shell script needs no JSON."""
    call = data.get("call") or {}
    message = data.get("message")
    facts = {
        "PUMICE_TOOL_NAME": call.get("name"),
        "PUMICE_TOOL_CALL_ID": call.get("id"),
        "PUMICE_TOOL_IS_ERROR": data.get("is_error"),
        "PUMICE_MESSAGE_ROLE": data.get("role") or (message.get("role") if isinstance(message, Mapping) else None),
        "PUMICE_OUTCOME": data.get("outcome"),
        "PUMICE_REASON": data.get("reason"),
        "PUMICE_TURN": data.get("turn_index"),
    }
    return {name: str(fact).lower() if isinstance(fact, bool) else str(fact) for name, fact in facts.items() if fact is not None}


def encoded(payload: Mapping[str, Any], redact: Callable[[str], str]) -> bytes:
    """The payload as JSON, without secrets; a text is cut after it was redacted, so that no half of a secret stays."""
    body = msgspec.json.encode(_shown(payload, redact))
    if len(body) > _LONGEST_BODY:
        body = msgspec.json.encode(_shown({**payload, "data": f"left out: {len(body)} bytes"}, redact))
    return body


def _shown(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        text = redact(value.encode("utf-8", "replace").decode())
        return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + f"... ({len(text)} characters)"
    if isinstance(value, Mapping):
        return {redact(key)[:_LONGEST_TEXT]: _shown(below, redact) for key, below in value.items()}
    if isinstance(value, list):
        return [_shown(below, redact) for below in value]
    return value
