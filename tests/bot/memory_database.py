"""A database that lives as long as a test."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from features.contracts.database import Migrations, Row, Value

__all__ = ["MemoryDatabase"]

T = TypeVar("T")


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        return self._connection.execute(sql, parameters).rowcount

    def fetch_one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        row: Row | None = self._connection.execute(sql, parameters).fetchone()
        return row

    def fetch_all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        return self._connection.execute(sql, parameters).fetchall()


class MemoryDatabase:
    """Implements ``features.contracts.database.Database`` on the loop's own thread. ``full`` is raised by every write."""

    def __init__(self, *migrations: Migrations) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self.full: Exception | None = None
        self.writes = 0
        for slice_migrations in migrations:
            for step in slice_migrations.steps:
                for statement in step:
                    self._connection.execute(statement)

    async def write(self, work: Callable[[_Transaction], T]) -> T:
        if self.full is not None:
            raise self.full
        self.writes += 1
        with self._connection:
            return work(_Transaction(self._connection))

    async def read(self, work: Callable[[_Transaction], T]) -> T:
        return work(_Transaction(self._connection))

    def close(self) -> None:
        self._connection.close()
