"""Chats that are read from the host's log and event streams: the page and the terminal."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

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

    What people say arrives by the host's HTTP and goes into the inbox there; what they are told is in the host's log, where a page or a
    terminal finds it, at once by its event stream or later. ``run`` only looks after the uploads.

    Args:
        doing: told of the line that says what goes on in a chat, None where there is none.
    """

    def __init__(self, name: str, *, uploads: UploadStore, doing: Callable[[Address, str | None], None], clock: Clock) -> None:
        self.name = name
        self._uploads = uploads
        self._doing = doing
        self._clock = clock
        self._state: Literal["starting", "working", "stopped"] = "starting"
        self._last_event_at: datetime | None = None

    async def run(self, sink: InboundSink) -> None:
        self._state = "working"
        try:
            await self._uploads.prune(self._clock)
        finally:
            self._state = "stopped"

    async def send(self, address: Address, message: OutboundMessage, progress: DeliveryProgress) -> None:
        self._last_event_at = self._clock.now()
        if progress.done == 0:
            await progress.confirm(None, last=True)

    def live(self, address: Address, *, reply_to: str | None, opened: Callable[[str], None]) -> LiveView:
        return _StatusView(lambda line: self._doing(address, line))

    async def close_buttons(self, address: Address, ref: str | None, text: str) -> bool:
        """The host's log has it already, and tells whoever listens."""
        return True

    async def fetch(self, attachment: Attachment, destination: Path, *, limit: int) -> None:
        await asyncio.to_thread(self._uploads.copy, attachment, destination, limit)

    async def announce_commands(self, commands: Sequence[ChatCommand]) -> None:
        """Nothing to announce: whoever shows a menu asks the API."""

    def health(self) -> ChannelHealth:
        return ChannelHealth(state=self._state, last_event_at=self._last_event_at)


class _StatusView:
    """The session's events show the answer of these chats; what goes on beside it is told where it changes."""

    lasting = False

    def __init__(self, doing: Callable[[str | None], None]) -> None:
        self._doing = doing
        self._line: str | None = None

    def show(self, text: str) -> None:
        pass

    def status(self, line: str | None) -> None:
        if line != self._line:
            self._line = line
            self._doing(line)

    async def close(self) -> str | None:
        self.status(None)
        return None
