"""Pieces of answers and progress of tools on their way to handlers that may be slower than they come."""

import asyncio
from collections.abc import Awaitable, Callable

from features.contracts.extension_events import ExtensionEvent, MessageStarted, MessageUpdated, ToolExecutionUpdated

__all__ = ["LiveUpdates"]


class LiveUpdates:
    """At most one update is being handed out; meanwhile pieces of text are gathered, and of each tool's progress the newest is kept.

    The start of a message comes before its pieces, and its end only after ``flush``.

    Args:
        dispatch: hands an event to its handlers.
    """

    def __init__(self, dispatch: Callable[[ExtensionEvent], Awaitable[object]]) -> None:
        self._dispatch = dispatch
        self._starts: list[MessageStarted] = []
        self._pieces: list[str] = []
        self._progress: dict[str, ToolExecutionUpdated] = {}
        self._task: asyncio.Task[None] | None = None

    def put(self, event: MessageStarted | MessageUpdated | ToolExecutionUpdated) -> None:
        if isinstance(event, MessageStarted):
            self._starts.append(event)
        elif isinstance(event, MessageUpdated):
            self._pieces.append(event.delta)
        else:
            self._progress[event.call.id] = event
        if self._task is None:
            self._task = asyncio.create_task(self._hand_out(), name="extension updates")

    async def flush(self) -> None:
        """Return when everything that was put has been handed out."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        self._starts.clear()
        self._pieces.clear()
        self._progress.clear()
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _hand_out(self) -> None:
        try:
            while self._starts or self._pieces or self._progress:
                if self._starts:
                    await self._dispatch(self._starts.pop(0))
                elif self._pieces:
                    delta = "".join(self._pieces)
                    self._pieces.clear()
                    await self._dispatch(MessageUpdated(delta))
                else:
                    await self._dispatch(self._progress.pop(next(iter(self._progress))))
        finally:
            self._task = None
