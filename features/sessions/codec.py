"""Entries as JSON text, and what can be saved of damaged ones."""

import json
from typing import Any, TypeVar

import msgspec

from features.contracts.sessions import SessionEntry, SessionHeader

__all__ = ["decode_entry", "decode_header", "encode", "well_formed"]

R = TypeVar("R", bound=msgspec.Struct)

# A tool may put anything into `details`; what JSON has no form for is kept as its text rather than failing the message.
_encoder = msgspec.json.Encoder(enc_hook=str)
_entries = msgspec.json.Decoder(SessionEntry)
_headers = msgspec.json.Decoder(SessionHeader)


def encode(record: msgspec.Struct) -> str:
    """JSON on one line; lone surrogates become U+FFFD."""
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
    """None where nothing can be made of it: damaged, or of a kind that this version does not know."""
    try:
        return _entries.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _salvaged(text)


def decode_header(text: str) -> SessionHeader | None:
    try:
        return _headers.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _salvaged(text: str) -> SessionEntry | None:
    """Other programs escape lone surrogates (``\\ud800``), which is JSON but no text that msgspec takes."""
    try:
        entry: SessionEntry = msgspec.convert(_without_surrogates(json.loads(text)), SessionEntry)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return entry


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
