"""Durable storage as slices see it. No slice knows which database serves it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

__all__ = ["Database", "Migrations", "Row", "Transaction", "Value"]

T = TypeVar("T")
Value = str | int | float | bytes | None
Row = tuple[Any, ...]


class Transaction(Protocol):
    """Contract.

    - Parameters are ``?``; SQL is the common subset of SQLite and PostgreSQL (``ON CONFLICT``, ``RETURNING``, no pragma).
    - ``execute`` returns the number of rows changed.
    - Calls are synchronous and run on the database's own thread.
    """

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int: ...

    def fetch_one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None: ...

    def fetch_all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]: ...


class Database(Protocol):
    """Contract.

    - ``write`` runs ``work`` in a transaction and returns once it is on the disk. What several callers hand in at the same time shares one
      flush; each has a savepoint of its own, so one that raises undoes itself alone. Works are carried out in the order of the calls.
    - ``work`` is quick and does nothing but SQL: it runs on another thread and may run again if a commit has to be repeated.
    - A cancelled ``write`` may or may not have happened; it is never half done.
    - ``read`` sees the last commit and never waits for the writer.
    - A full disk or a damaged file raises OperatorMustAct; nothing of that transaction is kept and the host may go on reading.
    """

    async def write(self, work: Callable[[Transaction], T]) -> T: ...

    async def read(self, work: Callable[[Transaction], T]) -> T: ...


class Migrations(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of one slice: its steps in order, each a list of SQL statements. A released step never changes; new ones are appended."""

    slice: str
    steps: tuple[tuple[str, ...], ...]
