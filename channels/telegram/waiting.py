"""Waiting for something, but not for ever, by the injected clock."""

import asyncio
from typing import Any

from features.contracts.clock import Clock

__all__ = ["ended", "happened"]


async def ended(task: "asyncio.Future[Any]", clock: Clock, seconds: float) -> bool:
    """Whether a task ends within a time. It is left alone if not, and also when this is cancelled."""
    if not task.done():
        timer = asyncio.ensure_future(clock.sleep(seconds))
        try:
            await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
    return task.done()


async def happened(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Whether an event is set within a time."""
    if not event.is_set():
        waiter = asyncio.ensure_future(event.wait())
        try:
            await ended(waiter, clock, seconds)
        finally:
            waiter.cancel()
    return event.is_set()
