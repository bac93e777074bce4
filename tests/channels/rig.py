"""What every channel's tests need: a sink, the progress of a delivery, a channel that runs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from features.contracts.chat import Address, ChatChannel, Cursor, InboundMessage

__all__ = ["Progress", "Sink", "running"]

C = TypeVar("C", bound=ChatChannel)


class Sink:
    """Implements ``InboundSink`` in memory; a key is taken once. ``broken`` lets it refuse."""

    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []
        self.moves: list[tuple[str, str]] = []
        self.cursors: dict[str, int] = {}
        self.accepted: list[tuple[tuple[str, ...], int | None]] = []
        self.broken: Exception | None = None
        self._keys: set[str] = set()
        self._changed = asyncio.Condition()

    async def moved(self, old: Address, new: Address) -> None:
        if self.broken:
            raise self.broken
        self.moves.append((str(old), str(new)))

    async def accept(self, messages: Sequence[InboundMessage], cursor: Cursor | None = None) -> None:
        if self.broken:
            raise self.broken
        for message in messages:
            if self._keys.isdisjoint((message.key, *message.aliases)):
                self.messages.append(message)
            self._keys.update((message.key, *message.aliases))
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


@asynccontextmanager
async def running(channel: C, sink: Sink) -> AsyncIterator[C]:
    """The channel's ``run`` as a host keeps it."""
    task = asyncio.create_task(channel.run(sink))
    try:
        yield channel
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
