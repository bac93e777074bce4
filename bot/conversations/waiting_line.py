"""The messages of one chat that wait for their turn."""

import asyncio
from collections import deque

from bot.delivery.inbox import Inbox, StoredMessage
from features.contracts.chat import Address

__all__ = ["WaitingLine"]

_IN_MEMORY = 50


class WaitingLine:
    """Messages in the order they came. At most 50 are held; the others stay in the inbox until there is room.

    Args:
        backlog: there are messages in the inbox from before, which come first.
    """

    def __init__(self, address: Address, inbox: Inbox, *, backlog: bool = False) -> None:
        self.changed = asyncio.Event()
        self._address = address
        self._inbox = inbox
        self._held: deque[StoredMessage] = deque()
        self._more = backlog
        self._last = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def empty(self) -> bool:
        return not self._held and not self._more

    def put(self, stored: StoredMessage) -> None:
        if self._more or len(self._held) >= _IN_MEMORY:
            self._more = True
        else:
            self._held.append(stored)
            self._last = stored.position
        self.changed.set()

    def peek(self) -> StoredMessage | None:
        """The first message, if one is in memory."""
        return self._held[0] if self._held else None

    def take(self) -> StoredMessage:
        return self._held.popleft()

    async def load(self) -> None:
        """Get from the inbox what there was no room for."""
        if self._held or not self._more:
            return
        messages = await self._inbox.waiting(self._address, after=self._last, limit=_IN_MEMORY)
        if messages:
            self._last = messages[-1].position
        else:
            self._more = False
        self._held.extend(messages)
