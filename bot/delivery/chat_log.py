"""What was said in a chat, both ways, as it stands in inbox and outbox."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from bot.delivery.delivery import Delivery, Outcome
from bot.delivery.inbox import StoredMessage
from bot.delivery.schema import decode_inbound, decode_outbound
from features.contracts.chat import Address, Attachment, Button, OutboundFile
from features.contracts.database import Database, Row

__all__ = ["ChatLog", "LastSaid", "LoggedMessage", "logged_delivery", "logged_message"]

_USER = (
    "SELECT id, 'user' AS role, message, received_at AS at, '[]' AS answers, 'success' AS outcome"
    " FROM inbox WHERE kind NOT IN ('edit', 'extension', 'job')"
)
_ASSISTANT = "SELECT id, 'assistant' AS role, message, created_at AS at, answers, outcome FROM outbox WHERE state <> 'held'"


class LoggedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of either side. Ids sort by time over both; ``answers`` are ids of what this one answers."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    at: datetime
    answers: tuple[str, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    files: tuple[OutboundFile, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    outcome: Outcome = "success"


class LastSaid(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said last in a chat."""

    address: Address
    text: str
    at: datetime


class ChatLog:
    """Reads; inbox and outbox write."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def messages(self, address: Address, *, before: str | None, limit: int) -> list[LoggedMessage]:
        """At most ``limit`` messages in the order of their ids, the newest before ``before``."""
        bound, parameters = ("", ()) if before is None else (" AND id < ?", (before,))
        each = f"SELECT * FROM ({{}} AND address = ?{bound} ORDER BY id DESC LIMIT ?)"  # noqa: S608
        sql = f"{each.format(_USER)} UNION ALL {each.format(_ASSISTANT)} ORDER BY id DESC LIMIT ?"
        side = (str(address), *parameters, limit)
        rows = await self._database.read(lambda t: t.fetch_all(sql, (*side, *side, limit)))
        return [_logged(row) for row in reversed(rows)]

    async def message(self, address: Address, message_id: str) -> LoggedMessage | None:
        sql = f"{_USER} AND address = ? AND id = ? UNION ALL {_ASSISTANT} AND address = ? AND id = ?"
        key = (str(address), message_id)
        row = await self._database.read(lambda t: t.fetch_one(sql, (*key, *key)))
        return None if row is None else _logged(row)

    async def chats(self, *, limit: int) -> list[LastSaid]:
        """Where somebody ever said something, the latest first."""
        sql = (
            "SELECT inbox.address, inbox.message, inbox.received_at FROM inbox JOIN"
            " (SELECT max(position) AS last FROM inbox WHERE kind NOT IN ('extension', 'job') GROUP BY address) AS newest"
            " ON inbox.position = newest.last"
            " ORDER BY inbox.position DESC LIMIT ?"
        )
        rows = await self._database.read(lambda t: t.fetch_all(sql, (limit,)))
        return [
            LastSaid(address=Address.parse(row[0]), text=decode_inbound(row[1]).text, at=datetime.fromisoformat(row[2])) for row in rows
        ]

    async def places(self) -> list[str]:
        """Every place in which somebody ever said something."""
        rows = await self._database.read(
            lambda t: t.fetch_all("SELECT DISTINCT place FROM inbox WHERE place NOT LIKE 'job:%' ORDER BY place")
        )
        return [row[0] for row in rows]


def logged_message(stored: StoredMessage) -> LoggedMessage:
    message = stored.message
    return LoggedMessage(id=stored.id, role="user", text=message.text, at=stored.received_at, attachments=message.attachments)


def logged_delivery(delivery: Delivery) -> LoggedMessage:
    message = delivery.message
    return LoggedMessage(
        id=delivery.id, role="assistant", text=message.text, at=delivery.created_at, answers=delivery.answers,
        buttons=message.buttons, files=message.files, outcome=delivery.outcome,
    )  # fmt: skip


def _logged(row: Row) -> LoggedMessage:
    message_id, role, message, at, answers, outcome = row
    moment = datetime.fromisoformat(at)
    if role == "user":
        said = decode_inbound(message)
        return LoggedMessage(id=message_id, role="user", text=said.text, at=moment, attachments=said.attachments)
    told = decode_outbound(message)
    listed: Sequence[str] = msgspec.json.decode(answers)
    return LoggedMessage(
        id=message_id, role="assistant", text=told.text, at=moment, answers=tuple(listed),
        buttons=told.buttons, files=told.files, outcome=outcome,
    )  # fmt: skip
