"""Tables of inbox and outbox, and how messages are written in them."""

from pathlib import Path
from typing import Any

import msgspec

from features.contracts.chat import InboundMessage, OutboundMessage
from features.contracts.database import Migrations

__all__ = ["DELIVERY_MIGRATIONS", "decode_inbound", "decode_outbound", "encode_inbound", "encode_outbound", "marks", "whole", "writable"]

DELIVERY_MIGRATIONS = Migrations(
    slice="delivery",
    steps=(
        (
            """
            CREATE TABLE inbox (
                id TEXT PRIMARY KEY,
                position BIGINT NOT NULL,
                key TEXT NOT NULL UNIQUE,
                address TEXT NOT NULL,
                place TEXT NOT NULL,
                kind TEXT NOT NULL,
                ref TEXT,
                message TEXT NOT NULL,
                owner INTEGER NOT NULL,
                received_at TEXT NOT NULL,
                state TEXT NOT NULL,
                run_id TEXT,
                session_id TEXT,
                entry_id TEXT
            )
            """,
            "CREATE UNIQUE INDEX inbox_ref ON inbox (address, ref) WHERE kind = 'message' AND ref IS NOT NULL",
            "CREATE INDEX inbox_position ON inbox (position)",
            "CREATE INDEX inbox_address ON inbox (address, position)",
            "CREATE INDEX inbox_log ON inbox (address, id)",
            "CREATE INDEX inbox_open ON inbox (state, position) WHERE state IN ('waiting', 'consumed')",
            """
            CREATE TABLE outbox (
                id TEXT PRIMARY KEY,
                position BIGINT NOT NULL,
                address TEXT NOT NULL,
                place TEXT NOT NULL,
                message TEXT NOT NULL,
                answers TEXT NOT NULL,
                run_id TEXT UNIQUE,
                state TEXT NOT NULL,
                done_parts INTEGER NOT NULL DEFAULT 0,
                draft_ref TEXT,
                attempts INTEGER NOT NULL DEFAULT 0,
                created_at TEXT NOT NULL,
                refs TEXT NOT NULL DEFAULT '[]',
                outcome TEXT NOT NULL DEFAULT 'success',
                error TEXT
            )
            """,
            "CREATE INDEX outbox_position ON outbox (position)",
            "CREATE INDEX outbox_log ON outbox (address, id)",
            "CREATE INDEX outbox_open ON outbox (state, address, position) WHERE state IN ('held', 'pending', 'sending')",
            "CREATE TABLE cursors (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
        ),
        ("CREATE TABLE inbox_aliases (alias TEXT PRIMARY KEY, message_id TEXT NOT NULL)",),
        ("CREATE INDEX inbox_place_log ON inbox (place, id)", "CREATE INDEX outbox_place_log ON outbox (place, id)"),
    ),
)


def _write(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value)} has no written form")


def _read(kind: type, value: Any) -> Any:
    if issubclass(kind, Path):
        return Path(value)
    raise NotImplementedError(f"{kind} has no written form")


_encoder = msgspec.json.Encoder(enc_hook=_write)
_inbound = msgspec.json.Decoder(InboundMessage)
_outbound = msgspec.json.Decoder(OutboundMessage, dec_hook=_read)


def writable(message: InboundMessage) -> InboundMessage:
    """The message without halves of characters, which JSON may hold and no database takes."""
    try:
        _encoder.encode(message)
    except UnicodeEncodeError:
        sender = msgspec.structs.replace(message.sender, name=whole(message.sender.name))
        attachments = tuple(msgspec.structs.replace(attachment, name=whole(attachment.name)) for attachment in message.attachments)
        return msgspec.structs.replace(message, text=whole(message.text), sender=sender, attachments=attachments)
    return message


def whole(text: str) -> str:
    """A text without halves of characters."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def encode_inbound(message: InboundMessage) -> str:
    return _encoder.encode(message).decode()


def decode_inbound(text: str) -> InboundMessage:
    return _inbound.decode(text)


def encode_outbound(message: OutboundMessage) -> str:
    return _encoder.encode(message).decode()


def decode_outbound(text: str) -> OutboundMessage:
    return _outbound.decode(text)


def marks(values: tuple[str, ...]) -> str:
    """As many ``?`` as there are values, for an ``IN`` clause."""
    return ", ".join("?" * len(values))
