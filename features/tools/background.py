"""Work on files in a thread, which ends when the call does."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Stop", "StoppedError", "in_thread"]

T = TypeVar("T")

_STOP_WAIT_S = 2.0


class StoppedError(Exception):
    """The call was cancelled; nobody waits for the result."""


class Stop:
    """What a working thread looks at between any two steps. ``expired``: give what there is; ``cancelled``: give up."""

    def __init__(self) -> None:
        self.expired = False
        self.cancelled = False

    def check(self) -> None:
        if self.cancelled:
            raise StoppedError


async def in_thread(work: Callable[[Stop], T], *, limit_s: float | None = None) -> T:
    """Run ``work`` in a thread. A cancelled caller waits a moment until it has stopped, so that it writes nothing afterwards.

    Args:
        limit_s: ``stop.expired`` becomes true after so long; the work decides what that means.
    """
    stop = Stop()
    loop = asyncio.get_running_loop()
    timer = loop.call_later(limit_s, setattr, stop, "expired", True) if limit_s is not None else None
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.cancelled = True
        done, _ = await asyncio.wait({task}, timeout=_STOP_WAIT_S)
        for finished in done:
            finished.exception()  # looked at, or asyncio complains that nobody did
        raise
    finally:
        if timer is not None:
            timer.cancel()
