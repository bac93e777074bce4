"""One question, one answer."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec

from channels.console.connection import ConsoleConnection, ConsoleEvent, ConsoleMessage

__all__ = ["Answer", "one_answer"]


class Answer(msgspec.Struct, frozen=True):
    """``failed``: the run behind it did not end well; ``text`` is then what there is to say about it."""

    text: str
    failed: bool


async def one_answer(connection: ConsoleConnection, text: str, files: Sequence[Path] = ()) -> Answer:
    """Say something and wait for its answer. When cancelled, the run is stopped."""
    waiting = _Waiting(connection, command=text.startswith("/"))
    async with aclosing(connection.events()) as events:
        try:
            async for event in events:
                if waiting.id is None:  # connected: what comes now is not missed
                    waiting.id = await connection.post(text, files)
                elif await waiting.take(event):
                    break
        except asyncio.CancelledError:
            if waiting.id is not None:
                await connection.post("/stop")
            raise
    assert waiting.answer is not None
    return Answer(waiting.answer.text, waiting.answer.outcome != "success" or waiting.outcome not in (None, "success"))


class _Waiting:
    """The answer is complete when it is delivered and no run goes on: the run's end may come before or after it."""

    def __init__(self, connection: ConsoleConnection, *, command: bool) -> None:
        self.id: str | None = None
        self.answer: ConsoleMessage | None = None
        self.outcome: str | None = None
        self._connection = connection
        self._command = command
        self._running = False

    async def take(self, event: ConsoleEvent) -> bool:
        match event.name:
            case "agent_start":
                self._running, self.outcome = True, None
            case "agent_settled":
                self._running, self.outcome = False, str(event.data["outcome"])
            case "delivered":
                self._see(msgspec.convert(event.data, ConsoleMessage))
            case "connected" | "resync":
                for message in await self._connection.messages():
                    self._see(message)
                if event.name == "resync":  # whether the run went on is not known; its answer tells
                    self._running = False
        return self.answer is not None and not self._running

    def _see(self, message: ConsoleMessage) -> None:
        own = self.id in message.answers
        # what a command says may not name the message; it is the first thing said after it
        said = self._command and message.role == "assistant" and not message.answers and message.id > (self.id or "")
        if self.answer is None and (own or said):
            self.answer = message
