"""Doubles of the contracts that every room's tests share."""

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

__all__ = ["FakeClock", "sequential_ids"]


class FakeClock:
    """A clock that stands until it is told to move."""

    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """How many sleeps are going on."""
        return sum(1 for _, _, woken in self._sleepers if not woken.done())

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + max(seconds, 0.0), next(self._order), woken))
        if seconds <= 0:
            self._wake()
        await woken

    async def advance(self, seconds: float) -> None:
        """Move on, waking sleepers in the order they are due and letting each run before the next is woken."""
        target = self._elapsed + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            self._move_to(max(self._sleepers[0][0], self._elapsed))
            self._wake()
            await _settle()
        self._move_to(target)
        await _settle()

    def set(self, moment: datetime) -> None:
        """Set the wall clock, as an administrator does; sleeps are not affected."""
        self._now = moment

    def _move_to(self, elapsed: float) -> None:
        self._now += timedelta(seconds=elapsed - self._elapsed)
        self._elapsed = elapsed

    def _wake(self) -> None:
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def sequential_ids(prefix: str = "id") -> Callable[[], str]:
    """Ids ``prefix-1``, ``prefix-2``, ..."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"
