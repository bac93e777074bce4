"""From Slack's events to the sink, in order and in batches; whoever waits for an event hears when it is stored."""

import asyncio
import logging
from collections.abc import Callable

from channels.slack.events import Incoming
from channels.slack.people import People
from features.contracts.chat import InboundMessage, InboundSink

__all__ = ["Intake"]

_log = logging.getLogger("pumice.slack")
_MAX_WAITING = 2000
_MAX_BATCH = 500


class NotTaken(Exception):
    """It was not stored: too much waits, or the channel stops. Slack keeps what it is not told of, and sends it again."""


class Intake:
    """Stores what arrives while it runs. Events that wait together are stored in one transaction.

    Args:
        stored: called with each message that the sink has taken.
    """

    def __init__(self, sink: InboundSink, people: People, *, stored: Callable[[InboundMessage], None]) -> None:
        self._sink = sink
        self._people = people
        self._stored = stored
        self._waiting: asyncio.Queue[tuple[Incoming, asyncio.Future[None]]] = asyncio.Queue(_MAX_WAITING)

    async def take(self, incoming: Incoming) -> None:
        """Return when it is stored.

        Raises:
            NotTaken, or whatever the sink raises.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._waiting.put_nowait((incoming, done))
        except asyncio.QueueFull:
            raise NotTaken from None
        await done

    async def run(self) -> None:
        try:
            await self._serve()
        finally:  # nobody may wait for what is not looked at any more
            while not self._waiting.empty():
                _, done = self._waiting.get_nowait()
                if not done.done():
                    done.set_exception(NotTaken())

    async def _serve(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < _MAX_BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            try:
                await self._store([incoming for incoming, _ in batch])
            except asyncio.CancelledError:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(NotTaken())
                raise
            except Exception as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    async def _store(self, batch: list[Incoming]) -> None:
        names = await self._people.names(user for incoming in batch for user in incoming.ids)
        messages = [incoming.named(names) for incoming in batch]
        await self._sink.accept(messages)
        for message in messages:
            self._stored(message)
