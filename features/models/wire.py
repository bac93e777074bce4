"""JSON for services."""

import json
from typing import Any

import msgspec

__all__ = ["encode_json", "join_request"]

_encoder = msgspec.json.Encoder()


def encode_json(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (OverflowError, ValueError):  # a whole number beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def join_request(head: dict[str, Any], messages: list[bytes | bytearray], *, under: str = "messages") -> bytes:
    """The whole body, with the messages last and copied only here."""
    return b"".join([encode_json(head)[:-1], b',"', under.encode(), b'":[', *messages, b"]}"])
