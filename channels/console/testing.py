"""A chat in memory, for whatever stands on ``ConsoleConnection``."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

from channels.console.connection import ConsoleEvent, ConsoleMessage
from features.contracts.chat import ChatCommand

__all__ = ["MemoryConnection"]


class MemoryConnection:
    """Implements ``ConsoleConnection``. ``reply`` is called for each posted message and answers with ``tell`` and ``deliver``."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, tuple[Path, ...]]] = []
        self.log: list[ConsoleMessage] = []
        self.reply: Callable[[str, str], None] = lambda identifier, text: None
        self._events: asyncio.Queue[ConsoleEvent] = asyncio.Queue()
        self.tell("connected")

    def tell(self, name: str, **data: Any) -> None:
        self._events.put_nowait(ConsoleEvent(name, data))

    def stream(self, *pieces: str) -> None:
        """An assistant message, piece by piece."""
        for piece in pieces:
            self.tell("message_update", assistantMessageEvent={"type": "text_delta", "contentIndex": 0, "delta": piece})
        self.tell("message_end", message={"role": "assistant", "content": [{"type": "text", "text": "".join(pieces)}]}, entryId="e")

    def deliver(self, text: str, *answers: str, told: bool = True, outcome: str = "success", **more: Any) -> None:
        """Put an answer into the log; without ``told`` the connection was lost just then."""
        data = {"id": self._next_id(), "role": "assistant", "text": text, "answers": answers, "outcome": outcome, **more}
        self.log.append(ConsoleMessage(id=data["id"], role="assistant", text=text, answers=answers, outcome=outcome))
        if told:
            self.tell("delivered", **data)

    async def post(self, text: str, files: Sequence[Path] = ()) -> str:
        identifier = self._next_id()
        self.posted.append((text, tuple(files)))
        self.log.append(ConsoleMessage(id=identifier, role="user", text=text))
        self.reply(identifier, text)
        return identifier

    async def events(self) -> AsyncGenerator[ConsoleEvent, None]:
        while True:
            yield await self._events.get()

    async def messages(self) -> Sequence[ConsoleMessage]:
        return self.log

    async def commands(self) -> Sequence[ChatCommand]:
        return [ChatCommand(name="status", description="How things stand"), ChatCommand(name="stop", description="Stop the run")]

    def _next_id(self) -> str:
        return f"{len(self.log) + 1:06d}"
