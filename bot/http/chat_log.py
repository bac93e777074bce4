"""A chat's messages as the API shows them."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from features.contracts.chat import Address, Button

__all__ = ["ChatLogFile", "ChatLogRow", "Outcome", "ShownFile", "ShownMessage", "shown"]

Outcome = Literal["success", "error", "aborted"]


class ChatLogFile(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    name: str


class ChatLogRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a chat: one that was accepted (``user``) or one that was put into the outbox (``assistant``).

    Ids sort by time, over both kinds. ``answers`` are the ids of the accepted messages that this one answers. ``outcome`` is how the run
    behind an answer ended.
    """

    id: str
    role: Literal["user", "assistant"]
    text: str
    at: datetime
    answers: tuple[str, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    files: tuple[ChatLogFile, ...] = ()
    outcome: Outcome = "success"


class ShownFile(msgspec.Struct, frozen=True, kw_only=True):
    """``url`` is below the host's own address and needs the token like everything else."""

    name: str
    url: str


class ShownMessage(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    role: Literal["user", "assistant"]
    text: str
    at: datetime
    answers: Sequence[str]
    buttons: Sequence[Sequence[Button]]
    files: Sequence[ShownFile]
    outcome: Outcome


def shown(address: Address, row: ChatLogRow) -> ShownMessage:
    """The row without paths of this machine."""
    base = f"/api/chats/{quote(str(address), safe=':')}/messages/{quote(row.id, safe='')}/files/"
    return ShownMessage(
        id=row.id,
        role=row.role,
        text=row.text,
        at=row.at,
        answers=row.answers,
        buttons=row.buttons,
        files=[ShownFile(name=file.name, url=f"{base}{index}") for index, file in enumerate(row.files)],
        outcome=row.outcome,
    )
