"""The database as the host opens it."""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from features.contracts.database import Migrations, Transaction
from features.contracts.errors import OperatorMustAct
from features.storage.backup import back_up
from features.storage.connection import open_connection
from features.storage.faults import closed, forbidden, raise_translated
from features.storage.inspection import inspect
from features.storage.migration import migrate
from features.storage.readers import Readers
from features.storage.writer import Writer

__all__ = ["Database"]

T = TypeVar("T")

_READERS = 4
_MAX_IDLE_LOG_BYTES = 64 * 1024 * 1024


class Database:
    """Implements ``features.contracts.database.Database`` over one SQLite file in WAL mode.

    The file and its folder are made where they are missing, for the host's user alone. A file is opened by one ``Database`` of one process;
    the host's lock on its data directory sees to that. Another program's lock on it is waited for up to five seconds.

    Args:
        migrations: those of every slice that is in use, a slice once.
    """

    def __init__(self, path: Path, migrations: Sequence[Migrations]) -> None:
        slices = [slice_.slice for slice_ in migrations]
        if len(set(slices)) < len(slices):
            raise ValueError(f"a slice registered its migrations twice: {slices}")
        self._path = path.absolute()
        self._migrations = tuple(migrations)
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._exit = AsyncExitStack()

    @property
    def commits(self) -> int:
        """How many commits writing has taken since the database was opened."""
        return self._writer.commits if self._writer is not None else 0

    async def __aenter__(self) -> Self:
        """Open the file, create or upgrade the tables; before an upgrade a copy is made, with ``.before-upgrade`` behind its name.

        Raises:
            OperatorMustAct: the file is damaged, newer than this program, another program's or not ours to write; it is left as it is.
        """
        try:
            await self._open()
        except OSError as error:
            raise forbidden(self._path, error) from error
        except sqlite3.Error as error:
            raise_translated(error, self._path)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._exit.aclose()

    async def write(self, work: Callable[[Transaction], T]) -> T:
        if self._writer is None:
            raise closed()
        result: T = await self._writer.write(work)
        return result

    async def read(self, work: Callable[[Transaction], T]) -> T:
        if self._readers is None:
            raise closed()
        result: T = await self._readers.read(work)
        return result

    async def backup(self, target: Path) -> None:
        """Copy the last committed state to ``target``, replacing what is there only once the copy is complete. Work goes on meanwhile."""
        await back_up(self._path, target.absolute())

    async def check(self) -> list[str]:
        """Read the whole file and say what is wrong with it; nothing if it is sound. Takes about a second per gigabyte."""

        def integrity(transaction: Transaction) -> list[str]:
            return [str(problem) for (problem,) in transaction.fetch_all("PRAGMA integrity_check")]

        try:
            problems = await self.read(integrity)
        except OperatorMustAct as error:
            return [str(error)]
        return [] if problems == ["ok"] else problems

    async def _open(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if await inspect(self._path, self._migrations):  # a way back, should the new version not be to anybody's liking
            await self.backup(self._path.with_name(f"{self._path.name}.before-upgrade"))
        _make_private(self._path)
        connection = await open_connection(self._path, partial(_prepare, path=self._path, migrations=self._migrations))
        # The writer is closed last: the last connection to close folds the log into the file.
        self._writer = Writer(connection, self._path)
        self._exit.push_async_callback(self._writer.close)
        self._readers = Readers(self._path, size=_READERS)
        self._exit.push_async_callback(self._readers.close)


def _make_private(path: Path) -> None:
    """SQLite gives its side files the mode of the database file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _prepare(connection: sqlite3.Connection, *, path: Path, migrations: Sequence[Migrations]) -> None:
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise OperatorMustAct(f"The file system of {path} does not allow SQLite's write-ahead log. Set a data_dir on a local disk.")
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA journal_size_limit = {_MAX_IDLE_LOG_BYTES}")
    migrate(connection, migrations)
