"""Progress of a tool at a pace that people and platforms can follow."""

import asyncio
from collections.abc import Callable

__all__ = ["Progress"]

_EVERY_S = 0.25


class Progress:
    """Reports the latest state at most four times a second; the state after the last change is reported too, unless it was closed."""

    def __init__(self, report: Callable[[str], None], state: Callable[[], str]) -> None:
        self._report = report
        self._state = state
        self._loop = asyncio.get_running_loop()
        self._next_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._next_at, self._loop.time()), self._send)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _send(self) -> None:
        self._timer = None
        self._next_at = self._loop.time() + _EVERY_S
        self._report(self._state())
