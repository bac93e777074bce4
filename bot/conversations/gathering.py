"""What belongs together becomes one turn: the pictures of an album, and the pieces a long text was cut into by the sender's app."""

import asyncio

from bot.conversations.turn import Turn
from bot.conversations.waiting_line import WaitingLine
from bot.delivery.inbox import StoredMessage
from features.contracts.clock import Clock

__all__ = ["Gathering"]

_QUIET_S = 0.8
_NEAR_LIMIT = 4000  # UTF-16 units; a platform cuts at 4096, or at a gap somewhat before
_MOST_MESSAGES = 30


class Gathering:
    """Takes turns off a waiting line. What may go on waits until nothing has come for 0.8 s."""

    def __init__(self, line: WaitingLine, clock: Clock) -> None:
        self._line = line
        self._clock = clock

    async def next(self) -> Turn | None:
        """The next turn, or None where nothing waits."""
        await self._line.load()
        if self._line.peek() is None:
            return None
        turn = Turn([self._line.take()])
        while _may_go_on(turn) and await self._more_arrives():
            stored = self._line.peek()
            assert stored is not None
            if stored.message.kind in ("edit", "deletion") and turn.edit(stored) is not None:
                self._line.take()
            elif _belongs(turn.messages[-1], stored):
                turn.joins(self._line.take())
            else:
                break
        return turn

    async def _more_arrives(self) -> bool:
        await self._line.load()
        if self._line.peek() is not None:
            return True
        quiet = asyncio.ensure_future(self._clock.sleep(_QUIET_S))
        try:
            while self._line.empty and not quiet.done():
                self._line.changed.clear()
                changed = asyncio.ensure_future(self._line.changed.wait())
                try:
                    await asyncio.wait((changed, quiet), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
        finally:
            quiet.cancel()
            await asyncio.gather(quiet, return_exceptions=True)
        await self._line.load()
        return self._line.peek() is not None


def _may_go_on(turn: Turn) -> bool:
    last = turn.messages[-1].message
    if last.kind != "message" or len(turn.messages) >= _MOST_MESSAGES:
        return False
    return last.album is not None or len(last.text.encode("utf-16-le", "surrogatepass")) // 2 >= _NEAR_LIMIT


def _belongs(last: StoredMessage, stored: StoredMessage) -> bool:
    before, message = last.message, stored.message
    if message.kind != "message" or message.sender.id != before.sender.id or message.text.lstrip().startswith("/"):
        return False
    if before.album is not None or message.album is not None:
        return message.album == before.album
    return True
