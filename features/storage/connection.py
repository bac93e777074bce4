"""A SQLite connection on a thread of its own."""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

__all__ = ["ThreadConnection", "open_connection", "wait_out"]

T = TypeVar("T")

_BUSY_TIMEOUT_S = 5.0


class ThreadConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs whole functions instead of single statements."""

    async def call(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``function`` on the connection's thread.

        aiosqlite's public methods go to the thread and back for every statement; ``_execute``, on which they all stand, is the only way
        to do a whole transaction in one trip.
        """
        result: T = await self._execute(function, self._conn)  # type: ignore[no-untyped-call]
        return result

    async def open(self) -> None:
        try:
            await self
        except BaseException:
            self._thread.join()  # it was told to stop; left alone it could outlive the loop and report to nobody
            raise

    async def shut(self) -> None:
        """Close once the work at hand is done. The thread ends even when the caller is cancelled; may be called twice."""
        if not self._running:
            return
        ended = self.stop()
        assert ended is not None
        try:
            await wait_out(ended)
        finally:
            self._thread.join()  # it has closed the connection and is returning


async def wait_out(future: asyncio.Future[Any]) -> None:
    """Wait until ``future`` is done, also when cancelled meanwhile; the cancellation is raised afterwards. For waits that are short."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def open_connection(path: Path | str, configure: Callable[[sqlite3.Connection], object], *, uri: bool = False) -> ThreadConnection:
    """Connect, with no implicit transactions, and run ``configure`` on it; nothing stays open if either fails."""

    connector = partial(sqlite3.connect, path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, uri=uri)
    connection = ThreadConnection(connector, iter_chunk_size=64)
    await connection.open()
    try:
        await connection.call(configure)
    except BaseException:
        await connection.shut()
        raise
    return connection
