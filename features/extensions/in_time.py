"""Somebody else's code, in a task of its own and with an end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from features.contracts.clock import Clock

__all__ = ["Guarded", "WrongReturn"]

log = logging.getLogger("pumice.extensions")

_GRACE_S = 1.0


class WrongReturn(Exception):
    """It gave back something that is not what was asked for; the text says what."""


class Guarded:
    """Runs functions of extensions. What ignores that it was cancelled is left behind, and cancelled once more by ``close``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[], Awaitable[Any]], seconds: float, *, name: str) -> Any:
        """What ``work`` gives.

        Raises:
            TimeoutError: it took longer; it has been cancelled.
            WrongReturn: it was no async function.
            Exception: whatever it raised; never BaseException but the caller's own cancellation.
        """
        task = asyncio.create_task(_awaited(work), name=name)
        try:
            await asyncio.sleep(0)
            if not task.done():
                await self._wait(task, seconds)
            if not task.done():
                raise TimeoutError(f"took longer than {seconds:g} s")
            if task.cancelled():
                raise RuntimeError("cancelled itself")
            return task.result()
        finally:
            if not task.done():
                await self._end(task)

    async def close(self) -> None:
        for task in tuple(self._left):
            await self._end(task)

    async def _wait(self, task: asyncio.Task[Any], seconds: float) -> None:
        timer = asyncio.create_task(self._clock.sleep(seconds))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

    async def _end(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        await self._wait(task, _GRACE_S)
        if task.done():
            _look_at(task)
        elif task not in self._left:
            log.error("an extension ignores that it was cancelled", extra={"facts": {"task": task.get_name()}})
            self._left.add(task)
            task.add_done_callback(self._left.discard)
            task.add_done_callback(_look_at)


async def _awaited(work: Callable[[], Awaitable[Any]]) -> Any:
    try:
        waiting = work()
        if not isinstance(waiting, Awaitable):
            raise WrongReturn("it is no async function")
        return await waiting
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:  # would end the host
        raise RuntimeError(f"tried to end the host with {error!r}") from None


def _look_at(task: asyncio.Task[Any]) -> None:
    """Whatever it ended with, nobody is interested any more."""
    if not task.cancelled():
        task.exception()
