"""A channel at work against the double of the Bot API."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random

from bot.clock import SystemClock
from channels.telegram import TelegramChannel, TelegramOptions
from channels.telegram.options import PollingPace
from features.contracts.chat import Address, Button, Cursor, InboundMessage, OutboundFile, OutboundMessage
from tests.servers.telegram import TelegramServer

__all__ = ["CHAT", "GROUP", "HERE", "PACE", "Progress", "Sink", "channel_of", "running", "send"]

CHAT = 1001
GROUP = -2002
HERE = Address("telegram", str(CHAT))
PACE = PollingPace(poll_s=1, silence_s=3.0, retry_s=0.01, retry_max_s=0.05, conflict_s=0.05, token_s=0.05)


class Sink:
    """Implements ``InboundSink`` in memory; a key is taken once. ``broken`` lets it refuse."""

    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []
        self.cursors: dict[str, int] = {}
        self.accepted: list[tuple[tuple[str, ...], int | None]] = []
        self.broken: Exception | None = None
        self._keys: set[str] = set()
        self._changed = asyncio.Condition()

    async def accept(self, messages: Sequence[InboundMessage], cursor: Cursor | None = None) -> None:
        if self.broken:
            raise self.broken
        self.messages.extend(message for message in messages if message.key not in self._keys)
        self._keys.update(message.key for message in messages)
        self.accepted.append((tuple(message.key for message in messages), cursor.value if cursor else None))
        if cursor:
            self.cursors[cursor.name] = cursor.value
        async with self._changed:
            self._changed.notify_all()

    async def cursor(self, name: str) -> int | None:
        return self.cursors.get(name)

    async def received(self, count: int) -> list[InboundMessage]:
        """Wait for that many messages."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: len(self.messages) >= count), 10)
        return self.messages

    async def advanced_to(self, value: int) -> None:
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: value in self.cursors.values()), 10)


class Progress:
    """Implements ``DeliveryProgress``; ``cut_after`` breaks off like a dying host."""

    def __init__(self, *, done: int = 0, draft: str | None = None) -> None:
        self.done = done
        self.draft = draft
        self.refs: list[str | None] = []
        self.finished = False

    async def confirm(self, ref: str | None, *, last: bool = False) -> None:
        self.done += 1
        self.refs.append(ref)
        self.finished = last


def channel_of(telegram: TelegramServer, *, token: str | None = None, pace: PollingPace = PACE, per_second: float = 0) -> TelegramChannel:
    options = TelegramOptions(token or telegram.token, telegram.url, per_second, pace)
    return TelegramChannel(options, clock=SystemClock(), random=Random(7))


@asynccontextmanager
async def running(channel: TelegramChannel, sink: Sink) -> AsyncIterator[TelegramChannel]:
    """The channel's ``run`` as a host keeps it."""
    task = asyncio.create_task(channel.run(sink))
    try:
        yield channel
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def send(
    channel: TelegramChannel,
    text: str = "",
    *,
    to: Address = HERE,
    files: tuple[OutboundFile, ...] = (),
    buttons: tuple[tuple[Button, ...], ...] = (),
    reply_to: str | None = None,
    possible_duplicate: bool = False,
    progress: Progress | None = None,
) -> Progress:
    progress = progress or Progress()
    message = OutboundMessage(text=text, files=files, buttons=buttons, reply_to=reply_to, possible_duplicate=possible_duplicate)
    await channel.send(to, message, progress)
    return progress
