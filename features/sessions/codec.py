"""Entries as JSON text, and what can be saved of damaged ones."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    SessionHeader,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
)
from features.sessions.json_line import changed, json_text, member

__all__ = ["decode_entries", "decode_entry", "decode_header", "encode", "well_formed"]

R = TypeVar("R", bound=msgspec.Struct)

_Known = (
    MessageEntry
    | ModelChangeEntry
    | ThinkingLevelChangeEntry
    | CompactionEntry
    | BranchSummaryEntry
    | CustomEntry
    | CustomMessageEntry
    | LabelEntry
    | SessionInfoEntry
)
# A tool may put anything into `details`; what JSON has no form for is kept as its text rather than failing the message.
_encoder = msgspec.json.Encoder(enc_hook=str)
_LARGEST_WHOLE = 2**53  # every whole number up to it is a float
_entries = msgspec.json.Decoder(_Known)
_headers = msgspec.json.Decoder(SessionHeader)


def encode(record: msgspec.Struct) -> str:
    """JSON on one line; lone surrogates become U+FFFD."""
    if isinstance(record, UnknownEntry):
        return _unknown_line(record)
    try:
        return _encoder.encode(record).decode()
    except UnicodeEncodeError:
        return _encoder.encode(well_formed(record)).decode()


def well_formed(record: R) -> R:
    """The record itself, or a copy in which lone surrogates, which UTF-8 has no form for, are U+FFFD."""
    try:
        _encoder.encode(record)
    except UnicodeEncodeError:
        return msgspec.convert(_without_surrogates(msgspec.to_builtins(record, enc_hook=str)), type(record))
    return record


def decode_entry(text: str) -> SessionEntry | None:
    """None where nothing can be made of it."""
    try:
        return _entries.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _salvaged(text)


def decode_entries(texts: Sequence[str]) -> list[SessionEntry | None]:
    """Each as ``decode_entry`` has it; quicker for many, nearly all of which are sound."""
    try:
        return [_entries.decode(text) for text in texts]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return [decode_entry(text) for text in texts]


def decode_header(text: str) -> SessionHeader | None:
    try:
        return _headers.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _salvaged(text: str) -> SessionEntry | None:
    """Other programs escape lone surrogates (``\\ud800``), which is JSON but no text for msgspec, write whole numbers as ``1e3``, and have
    kinds of their own.
    """
    try:
        read = json.loads(text)
        if not isinstance(read, dict):
            return None
        fields = _with_whole_numbers(_without_surrogates(read))
    except (ValueError, RecursionError):
        return None
    try:
        entry: SessionEntry = msgspec.convert(fields, _Known)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _unknown(fields, text)
    return entry


def _unknown(fields: dict[str, Any], text: str) -> UnknownEntry | None:
    entry_id, parent_id, timestamp = fields.get("id"), fields.get("parentId"), fields.get("timestamp")
    if not isinstance(fields.get("type"), str) or not isinstance(entry_id, str) or not isinstance(parent_id, str | None):
        return None
    if "parentId" not in fields:  # where it hangs is not known
        return None
    return UnknownEntry(id=entry_id, parent_id=parent_id, timestamp=timestamp if isinstance(timestamp, str) else "", line=text)


def _unknown_line(entry: UnknownEntry) -> str:
    if json.loads(member(entry.line, "parentId") or "null") == entry.parent_id:
        return entry.line
    return changed(entry.line, {"parentId": json_text(entry.parent_id)})


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _LARGEST_WHOLE else value
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    return value
