"""Chats that are read from the host's log and event streams: the page and the terminal."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path

from channels.web.uploads import UploadStore
from features.contracts.chat import (
    Address,
    Attachment,
    ChannelHealth,
    ChatCommand,
    DeliveryProgress,
    InboundSink,
    LiveView,
    OutboundMessage,
)
from features.contracts.clock import Clock

__all__ = ["WebChannel"]


class WebChannel:
    """Implements ``ChatChannel`` for the addresses ``name:*``.

    What people say arrives by the host's HTTP and goes into the inbox there; ``run`` only looks after the uploads.

    Args:
        handed_over: called with each finished message once nothing can stop it; the host tells it to the chat's listeners.
    """

    def __init__(
        self,
        name: str,
        *,
        uploads: UploadStore,
        clock: Clock,
        handed_over: Callable[[Address, OutboundMessage], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._uploads = uploads
        self._clock = clock
        self._handed_over = handed_over
        self._running = False
        self._last_event_at: datetime | None = None

    async def run(self, sink: InboundSink) -> None:
        self._running = True
        try:
            await self._uploads.prune(self._clock)
        finally:
            self._running = False

    async def send(self, address: Address, message: OutboundMessage, progress: DeliveryProgress) -> None:
        self._last_event_at = self._clock.now()
        if progress.done == 0:
            await progress.confirm(None)
        if self._handed_over is not None:
            await self._handed_over(address, message)

    def live(self, address: Address, *, reply_to: str | None, opened: Callable[[str], None]) -> LiveView:
        return _NoView()

    async def fetch(self, attachment: Attachment, destination: Path, *, limit: int) -> None:
        await asyncio.to_thread(self._uploads.copy, attachment, destination, limit)

    async def announce_commands(self, commands: Sequence[ChatCommand]) -> None:
        """Nothing to announce: whoever shows a menu asks the API."""

    def health(self) -> ChannelHealth:
        return ChannelHealth(state="working" if self._running else "stopped", last_event_at=self._last_event_at)


class _NoView:
    """The session's events are the live view of these chats."""

    def show(self, text: str) -> None:
        pass

    def status(self, line: str | None) -> None:
        pass

    async def close(self) -> str | None:
        return None
