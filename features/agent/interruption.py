"""How a run is told to stop, and which of its awaits obey."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["Interruption", "RunStopped"]

T = TypeVar("T")


class RunStopped(Exception):
    """The run was told to stop while it waited for something that may be cut."""


class Interruption:
    """A request to stop that cancels the run's task once and is from then on a fact to look at.

    Waiting for a model, a tool or a retry is cut (``cut_here``); storing is awaited to its end (``whole``), because half a commit cannot
    be taken back. So a run sees a cancellation, whoever caused it, only at the places that are made for it.
    """

    def __init__(self) -> None:
        self.requested = False
        self._task: asyncio.Task[None] | None = None

    def bind(self, task: asyncio.Task[None] | None) -> None:
        """Name the task to cancel; called by the task itself, since one that is cancelled before its first step would never run."""
        self._task = task

    def request(self) -> None:
        if not self.requested:
            self.requested = True
            if self._task is not None:
                self._task.cancel()

    @contextmanager
    def cut_here(self) -> Iterator[None]:
        """Mark awaits that a stop cuts.

        Raises:
            RunStopped: when told to stop, before or meanwhile.
        """
        if self.requested:
            raise RunStopped
        try:
            yield
        except asyncio.CancelledError:
            self.requested = True
            raise RunStopped from None

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something to its end; a stop meanwhile is noted and not obeyed."""
        task = asyncio.ensure_future(work)
        while not task.done():
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError:
                self.requested = True
        return task.result()
