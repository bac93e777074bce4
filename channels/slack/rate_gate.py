"""One pace for everything that is sent to a workspace.

Slack's figures: a message a second per conversation, and for every method so many calls a minute for the whole workspace. Finals wait
for their turn in the order they came; previews take one only when it is free and enough is left for the finals.
"""

import asyncio
from collections import deque

from features.contracts.clock import Clock

__all__ = ["RateGate"]

_MINUTE_S = 65.0  # more than the minute: what is sent in one instant may arrive over seconds where much is sent
_PER_MINUTE = {
    "chat.postMessage": 300,
    "chat.postEphemeral": 100,
    "chat.update": 50,
    "chat.startStream": 20,
    "chat.appendStream": 100,
    "chat.stopStream": 20,
    "assistant.threads.setStatus": 100,
    "conversations.replies": 50,
    "users.info": 100,
    "files.getUploadURLExternal": 20,
    "files.completeUploadExternal": 50,
}
_SHARE = 0.95
_CONVERSATION_INTERVAL_S = 1.2  # more than the second: what is sent evenly does not arrive evenly
_AT_ONCE = 0.75
_KEPT_FOR_FINALS = 0.4
_KEPT_CONVERSATIONS = 2000
_ROUNDING = 1e-6


class _Pace:
    """Turns of one method, or of one conversation: at most ``most`` within any ``window`` seconds.

    The last quarter of them is evenly spaced, so that whoever comes later does not wait for a whole window.
    """

    def __init__(self, most: int, window: float) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.closed_until = 0.0
        self._most = most
        self._window = window
        self._recent: deque[float] = deque(maxlen=most)

    def take(self, now: float) -> None:
        self._recent.append(now)

    def wait(self, now: float) -> float:
        """Seconds until there is a turn."""
        if now < self.closed_until:
            return self.closed_until - now
        taken = self._taken(now)
        if taken < self._most * _AT_ONCE:
            return 0.0
        free_at = self._recent[-1] + self._window / self._most
        if taken == self._most:
            free_at = max(free_at, self._recent[0] + self._window)
        return max(0.0, free_at - now)

    def spare(self, now: float) -> bool:
        """Whether there is a turn now, and enough of them for what must not wait."""
        left = self._most - self._taken(now)
        return not self.users and left - 1 >= _KEPT_FOR_FINALS * (self._most - 1) and self.wait(now) <= 0

    def _taken(self, now: float) -> int:
        while self._recent and self._recent[0] <= now - self._window + _ROUNDING:
            self._recent.popleft()
        return len(self._recent)


class RateGate:
    """Contract.

    - A conversation that is closed or busy delays no other; a method that is closed delays only itself.
    - ``turn`` serves those who wait in the order they came; it may be cancelled.
    - ``spare`` never waits.

    Args:
        paced: False keeps no pace and only obeys ``close``.
    """

    def __init__(self, clock: Clock, *, paced: bool) -> None:
        self._clock = clock
        self._paced = paced
        self._methods: dict[str, _Pace] = {}
        self._conversations: dict[str, _Pace] = {}

    async def turn(self, method: str, conversation: str) -> None:
        """Wait until a call may be made."""
        for pace in self._paces(method, conversation):
            pace.users += 1
            try:
                async with pace.lock:
                    while (wait := self._wait(pace)) > 0:
                        await self._clock.sleep(wait)
                    pace.take(self._clock.monotonic())
            finally:
                pace.users -= 1

    def spare(self, method: str, conversation: str) -> bool:
        """Take a turn for a preview if one is free and enough is left for the finals."""
        now = self._clock.monotonic()
        paces = self._paces(method, conversation)
        if any(now < pace.closed_until for pace in paces):
            return False
        if not self._paced:
            return True
        if not all(pace.spare(now) for pace in paces):
            return False
        for pace in paces:
            pace.take(now)
        return True

    def close(self, method: str, conversation: str, seconds: float) -> None:
        """Slack asked for a pause: of the conversation for messages, else of the method."""
        until = self._clock.monotonic() + seconds
        pace = self._conversation(conversation) if method == "chat.postMessage" else self._method(method)
        pace.closed_until = max(pace.closed_until, until)

    def closed_for(self, method: str, conversation: str) -> float:
        """Seconds until the pause that Slack asked for ends; 0 where there is none."""
        now = self._clock.monotonic()
        return max(0.0, *(pace.closed_until - now for pace in self._paces(method, conversation)))

    def _wait(self, pace: _Pace) -> float:
        now = self._clock.monotonic()
        return pace.wait(now) if self._paced else max(0.0, pace.closed_until - now)

    def _paces(self, method: str, conversation: str) -> list[_Pace]:
        # The method's turn may take long to come; the conversation's second counts from when it has.
        return [self._method(method), self._conversation(conversation)] if method == "chat.postMessage" else [self._method(method)]

    def _method(self, method: str) -> _Pace:
        if method not in self._methods:
            self._methods[method] = _Pace(int(_PER_MINUTE.get(method, 50) * _SHARE), _MINUTE_S)
        return self._methods[method]

    def _conversation(self, conversation: str) -> _Pace:
        if conversation not in self._conversations:
            if len(self._conversations) >= _KEPT_CONVERSATIONS:
                now = self._clock.monotonic()
                kept = {name: pace for name, pace in self._conversations.items() if pace.users or pace.wait(now) > 0}
                self._conversations = kept
            self._conversations[conversation] = _Pace(1, _CONVERSATION_INTERVAL_S)
        return self._conversations[conversation]
