"""Tasks with an owner."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from features.contracts.clock import Clock

__all__ = ["FULL_DISK_DELAY_S", "Errands", "within"]

FULL_DISK_DELAY_S = 15.0
"""How long work that a full disk held up waits before it tries again."""


class Errands:
    """The background tasks of one owner: what fails is logged with an error id, what is left is cancelled by ``close``."""

    def __init__(self, log: logging.Logger, ids: Callable[[], str]) -> None:
        self._log = log
        self._ids = ids
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._guard(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # one that was cancelled before its first step
        return task

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self) -> None:
        """Wait until everything that runs now, and what that starts, has ended."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _guard(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except Exception:
            self._log.exception("task failed", extra={"facts": {"task": name, "error_id": self._ids()}})


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, None]) -> bool:
    """Do something, at most so long; False if it was cut."""
    task = asyncio.ensure_future(work)
    limit = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((task, limit), return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        limit.cancel()
        task.cancel()
        await asyncio.gather(task, limit, return_exceptions=True)
