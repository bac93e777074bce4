"""One pace for everything that a bot sends.

Telegram takes about one message a second per chat, 20 a minute per group and 30 a second per bot. Whoever sends shares these
turns: final texts and files wait for theirs in order, previews take one only when it is free at once.
"""

import asyncio
from collections import deque

from features.contracts.clock import Clock

__all__ = ["FloodGate"]

_CHAT_INTERVAL_S = 1.1  # a little more than the platform's second: what is sent evenly does not arrive evenly
_GROUP_WINDOW_S = 60.5
_GROUP_SENDS = 20
_BOT_WINDOW_S = 1.0
_BOT_SHARE = 0.9  # what is sent evenly arrives in little bunches
_KEPT_CHATS = 1000


class _Chat:
    """What is known of one chat's pace."""

    def __init__(self, group: bool) -> None:
        self.turn = asyncio.Lock()
        self.users = 0
        self.closed_until = 0.0
        self.next_at = 0.0
        self.recent: deque[float] | None = deque(maxlen=_GROUP_SENDS) if group else None

    def ready_at(self) -> float:
        full = self.recent is not None and len(self.recent) == _GROUP_SENDS
        return max(self.closed_until, self.next_at, self.recent[0] + _GROUP_WINDOW_S if full and self.recent else 0.0)

    def took(self, now: float) -> None:
        self.next_at = now + _CHAT_INTERVAL_S
        if self.recent is not None:
            self.recent.append(now)


class FloodGate:
    """Contract.

    - A chat that is closed or busy delays no other chat.
    - ``turn`` serves those who wait for one chat in the order they came; it may be cancelled.
    - ``free`` and ``quiet`` never wait.

    Args:
        per_second: the whole bot's pace; 0 keeps no pace and only obeys ``close``.
    """

    def __init__(self, clock: Clock, *, per_second: float) -> None:
        self._clock = clock
        self._paced = per_second > 0
        self._bot_interval = 1 / (per_second * _BOT_SHARE) if self._paced else 0.0
        self._bot_next_at = 0.0
        self._bot_recent: deque[float] = deque(maxlen=max(1, int(per_second * _BOT_SHARE))) if self._paced else deque()
        self._bot_waiting = 0
        self._chats: dict[str, _Chat] = {}

    async def turn(self, chat: str) -> None:
        """Wait until a final message may go to this chat."""
        state = self._chat(chat)
        state.users += 1
        try:
            async with state.turn:
                await self._chat_turn(state)
                while self._paced and await self._bot_turn() and state.closed_until > self._clock.monotonic():
                    await self._chat_turn(state)
                self._took(state)
        finally:
            state.users -= 1

    def free(self, chat: str) -> bool:
        """Take a turn for a preview if one is free now and nobody waits for it."""
        state = self._chat(chat)
        now = self._clock.monotonic()
        if self._bot_full_for(now) > 0 or state.users or self._bot_waiting or self._ready_at(state) > now or self._bot_next_at > now:
            return False
        if self._paced:
            self._bot_next_at = now + self._bot_interval
        self._took(state)
        return True

    def quiet(self, chat: str) -> bool:
        """Whether something that needs no turn, like a typing indicator, may go without making a flood worse."""
        state = self._chats.get(chat)
        return not self._bot_waiting and (state is None or state.closed_until <= self._clock.monotonic())

    def close(self, chat: str, seconds: float) -> None:
        """The platform asked for a pause in this chat."""
        state = self._chat(chat)
        state.closed_until = max(state.closed_until, self._clock.monotonic() + seconds)

    def closed_for(self, chat: str) -> float:
        """Seconds until the pause that the platform asked for ends; 0 when there is none."""
        state = self._chats.get(chat)
        return max(0.0, state.closed_until - self._clock.monotonic()) if state else 0.0

    def _ready_at(self, state: _Chat) -> float:
        return state.ready_at() if self._paced else state.closed_until

    async def _chat_turn(self, state: _Chat) -> None:
        while (wait := self._ready_at(state) - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)

    async def _bot_turn(self) -> bool:
        """Reserve the next of the bot's evenly spaced turns and wait for it; whether there was anything to wait for."""
        now = self._clock.monotonic()
        mine = max(self._bot_next_at, now)
        self._bot_next_at = mine + self._bot_interval
        if mine <= now:
            return False
        self._bot_waiting += 1
        try:
            await self._clock.sleep(mine - now)
            while (wait := self._bot_full_for(self._clock.monotonic())) > 0:  # after a stall, many wake at once
                await self._clock.sleep(wait)
        finally:
            self._bot_waiting -= 1
        return True

    def _bot_full_for(self, now: float) -> float:
        """Seconds until the bot may send again, by what it has really sent within the last one."""
        recent = self._bot_recent
        return recent[0] + _BOT_WINDOW_S - now if recent and len(recent) == recent.maxlen else 0.0

    def _took(self, state: _Chat) -> None:
        if self._paced:
            now = self._clock.monotonic()
            state.took(now)
            self._bot_recent.append(now)

    def _chat(self, chat: str) -> _Chat:
        state = self._chats.get(chat)
        if state is None:
            if len(self._chats) >= _KEPT_CHATS:
                self._forget_idle()
            state = self._chats[chat] = _Chat(group=chat.startswith("-"))
        return state

    def _forget_idle(self) -> None:
        now = self._clock.monotonic()
        self._chats = {chat: state for chat, state in self._chats.items() if state.users or state.ready_at() > now}
