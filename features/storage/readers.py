"""Readers: a few connections that see the last commit and cannot write."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from features.storage.connection import ThreadConnection, open_connection
from features.storage.faults import closed, raise_translated
from features.storage.transaction import Work, read

__all__ = ["Readers"]


class Readers:
    """Up to ``size`` connections, opened when first needed; the one used last is used next, so that a quiet host has one."""

    def __init__(self, path: Path, *, size: int) -> None:
        self._path = path
        self._slots = asyncio.Semaphore(size)
        self._idle: list[ThreadConnection] = []
        self._opened: list[ThreadConnection] = []
        self._closing = False

    async def read(self, work: Work) -> Any:
        async with self._slots:
            if self._closing:
                raise closed()
            try:
                connection = self._idle.pop() if self._idle else await self._open()
                try:
                    return await connection.call(partial(read, work))
                finally:
                    # After a cancelled read too: the thread ends that read before it begins the next.
                    self._idle.append(connection)
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY:
                    raise  # a work that writes is a defect, not a matter of file permissions
                raise_translated(error, self._path)

    async def close(self) -> None:
        self._closing = True
        async with AsyncExitStack() as all_of_them:  # each is shut, whatever happens to the others
            for connection in self._opened:
                all_of_them.push_async_callback(connection.shut)

    async def _open(self) -> ThreadConnection:
        connection = await open_connection(self._path, _configure)
        self._opened.append(connection)
        if self._closing:
            await connection.shut()
            raise closed()
        return connection


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = ON")
