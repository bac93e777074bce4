"""What a terminal needs of the chat that it shows."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from features.contracts.chat import ChatCommand

__all__ = ["ConsoleConnection", "ConsoleEvent", "ConsoleMessage"]


class ConsoleEvent(msgspec.Struct, frozen=True):
    """A session event by its name, or ``connected``, ``resync``, ``status``, ``delivered``, ``changed``, ``received``."""

    name: str
    data: dict[str, Any]


class ConsoleButton(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    command: str


class ConsoleFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    url: str


class ConsoleMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the chat's log. ``outcome`` is how the run behind an answer ended."""

    id: str
    role: str
    text: str
    answers: tuple[str, ...] = ()
    buttons: tuple[tuple[ConsoleButton, ...], ...] = ()
    files: tuple[ConsoleFile, ...] = ()
    outcome: str = "success"


class ConsoleConnection(Protocol):
    """Contract.

    - ``events`` begins with ``connected``; from then on nothing is missed. After a lost connection it comes again.
    - ``post`` gives the message's id, which the answer names. It raises UserMustAct for a file that cannot be read or is too large.
    - ``messages`` are the newest of the log, oldest first.
    """

    async def post(self, text: str, files: Sequence[Path] = ()) -> str: ...

    def events(self) -> AsyncGenerator[ConsoleEvent, None]: ...

    async def messages(self) -> Sequence[ConsoleMessage]: ...

    async def commands(self) -> Sequence[ChatCommand]: ...
