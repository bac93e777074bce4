"""What a turn needs before it can be said to the session: the session itself, what was overheard, its files, what extensions make of it."""

import asyncio
from collections.abc import Awaitable, Callable

from bot.conversations.overheard import overheard_note
from bot.conversations.pending import Pending
from bot.conversations.services import ConversationServices
from bot.conversations.session_seat import SessionSeat
from bot.conversations.turn import Turn
from bot.delivery.wording import STOPPED
from features.contracts.chat import Address

__all__ = ["Preparation"]


class Preparation:
    """Prepares one turn at a time; ``cancel`` gives it up.

    Args:
        say: puts a text into the chat; the second argument names the messages that it answers.
    """

    def __init__(
        self,
        address: Address,
        services: ConversationServices,
        seat: SessionSeat,
        pending: Pending,
        say: Callable[[str, tuple[str, ...]], Awaitable[None]],
    ) -> None:
        self._address = address
        self._services = services
        self._seat = seat
        self._pending = pending
        self._say = say
        self._task: asyncio.Task[None] | None = None

    @property
    def active(self) -> bool:
        return self._task is not None

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def ready(self, turn: Turn) -> bool:
        """Whether the turn can be said now; False where it was stopped meanwhile or an extension has dealt with it, which is told here."""
        task = self._task = asyncio.create_task(self._make_ready(turn), name=f"prepare {self._address}")
        try:
            await asyncio.wait([task])
        finally:
            self._task = None
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if task.cancelled():
            await self._say(STOPPED, turn.ids)
            return False
        task.result()
        if turn.heard is not None and turn.heard.handled:
            await self._swallowed(turn, turn.heard.reply)
            return False
        return True

    async def _make_ready(self, turn: Turn) -> None:
        session = await self._seat.get()
        channel = self._services.channels[self._address.channel]
        if (note := await overheard_note(channel, self._services.inbox, turn)) is not None:
            turn.notes.append(note)
        if turn.fetched is None and turn.attachments:
            turn.fetched = await self._services.attachments.fetch(turn, channel, vision="image" in session.model.input)
            for problem in turn.fetched.problems:
                await self._say(problem, ())
        self._pending.dress(turn)
        if turn.heard is None and not (turn.apart and turn.empty):
            turn.heard = await session.hear(turn.prompt())

    async def _swallowed(self, turn: Turn, reply: str | None) -> None:
        if reply and reply.strip():
            await self._say(reply, turn.ids)
        else:
            await self._services.inbox.close_without_answer(turn.ids, skipped=False)
