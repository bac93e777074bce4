"""What the Bot API takes and what it refuses, with its own words."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request

__all__ = ["Body", "Refused", "check_keyboard", "formatted", "read_body", "utf16"]

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_ENTITIES = 100
_PLAIN_TYPES = ("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "text_mention", "custom_emoji")
_STYLES = ("bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre", "text_link")
_ENTITY_TYPES = frozenset(_PLAIN_TYPES + _STYLES)


class Refused(Exception):
    """An answer with ``ok: false``."""

    def __init__(self, code: int, description: str, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    @classmethod
    def bad(cls, description: str) -> "Refused":
        return cls(400, f"Bad Request: {description}")


class Body(msgspec.Struct, frozen=True):
    """The parameters of a call, nested ones still as they were sent, and its files: name and content by part."""

    values: dict[str, Any]
    files: dict[str, tuple[str, bytes]]

    def text(self, name: str) -> str:
        return str(self.values.get(name, ""))

    def number(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None or value == "":
            return None
        try:
            return int(value)
        except ValueError:
            raise Refused.bad(f"{name} must be an integer") from None

    def nested(self, name: str) -> Any:
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise Refused.bad(f"can't parse {name} JSON object") from None


async def read_body(request: Request) -> Body:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind == "application/json":
        return Body(await request.json(), {})
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data", ""):
        raise Refused.bad(f"unsupported content type {kind}")
    if not kind:
        return Body(dict(request.query_params), {})
    values: dict[str, Any] = dict(request.query_params)
    files: dict[str, tuple[str, bytes]] = {}
    async with request.form() as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                files[name] = (value.filename or "", await value.read())
            else:
                values[name] = value
    return Body(values, files)


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def formatted(text: str, entities: Any, *, limit: int, what: str) -> tuple[str, list[dict[str, Any]]]:
    """A text as the server keeps it: outer whitespace and empty entities trimmed, the rest checked."""
    encoded = text.encode("utf-16-le")
    kept = [_checked(entity, encoded) for entity in entities or []]
    kept = sorted(kept, key=lambda entity: (entity["offset"], -entity["length"]))[:MAX_ENTITIES]
    _check_nesting(kept)
    first = kept[0]["offset"] if kept else len(encoded) // 2
    lead = min(utf16(text) - utf16(text.lstrip()), first)
    trimmed = encoded[2 * lead :].decode("utf-16-le").rstrip()
    if utf16(trimmed) > limit:
        raise Refused.bad(f"{what} is too long")
    end = utf16(trimmed)
    shifted = []
    for entity in kept:
        offset = entity["offset"] - lead
        length = min(entity["length"], end - offset)
        if length > 0 and trimmed.encode("utf-16-le")[2 * offset : 2 * (offset + length)].decode("utf-16-le").strip():
            shifted.append({**entity, "offset": offset, "length": length})
    return trimmed, shifted


def _checked(entity: Any, encoded: bytes) -> dict[str, Any]:
    if not isinstance(entity, dict) or entity.get("type") not in _ENTITY_TYPES:
        raise Refused.bad("can't parse MessageEntity: Unsupported type specified")
    offset, length = entity.get("offset"), entity.get("length")
    if not isinstance(offset, int) or not isinstance(length, int) or offset < 0 or length <= 0:
        raise Refused.bad("can't parse entities: entity with an incorrect range")
    if 2 * (offset + length) > len(encoded):
        raise Refused.bad("ENTITY_BOUNDS_INVALID")
    for position, verb in ((offset, "begins"), (offset + length, "ends")):
        unit = int.from_bytes(encoded[2 * position : 2 * position + 2], "little")
        if 0xDC00 <= unit <= 0xDFFF:
            raise Refused.bad(f"can't parse entities: Entity {verb} in a middle of a UTF-16 symbol at byte offset {2 * position}")
    if entity["type"] == "text_link" and not re.match(r"(https?|tg|ton)://\S", str(entity.get("url", "")), re.IGNORECASE):
        raise Refused.bad("ENTITY_TEXTURL_INVALID")
    return entity


def _check_nesting(entities: list[dict[str, Any]]) -> None:
    """Stricter than the real server, which repairs some of it in ways that lose formatting."""
    open_until: list[tuple[int, str]] = []
    for entity in entities:
        start, end, kind = entity["offset"], entity["offset"] + entity["length"], entity["type"]
        open_until = [(until, outer) for until, outer in open_until if until > start]
        for until, outer in open_until:
            if end > until:
                raise Refused.bad("can't parse entities: entities overlap")
            if outer in ("pre", "code") or outer == kind or (kind in ("pre", "code") and outer != "blockquote"):
                raise Refused.bad(f"can't parse entities: {kind} inside {outer}")
        open_until.append((end, kind))


def check_keyboard(markup: Any) -> list[list[dict[str, str]]]:
    """An inline keyboard's rows; the only markup there is here."""
    if markup is None:
        return []
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    if not isinstance(rows, list):
        raise Refused.bad("object expected as reply markup")
    for button in (button for row in rows for button in row):
        if not str(button.get("text", "")).strip():
            raise Refused.bad("inline keyboard button text must be non-empty")
        if not 1 <= len(str(button.get("callback_data", "")).encode()) <= 64:
            raise Refused.bad("BUTTON_DATA_INVALID")
    return rows
