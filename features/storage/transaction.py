"""Carrying out works on a connection's thread: many in one transaction, each undone alone when it raises."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from features.contracts.database import Row, Transaction, Value

__all__ = ["Outcome", "Report", "Work", "carry_out", "read"]

Work = Callable[[Transaction], Any]

_tolerant_text = partial(str, encoding="utf-8", errors="replace")


class Outcome(NamedTuple):
    """What a work came to: its value, or the error that undid it."""

    value: Any
    error: BaseException | None = None


class Report(NamedTuple):
    """What a batch came to, in the order of its works, and how many commits it took."""

    outcomes: list[Outcome]
    commits: int


class _TransactionEnded(Exception):
    """A work ended the transaction itself."""


class _Statements:
    """Implements ``Transaction`` on the connection's own thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._fatal: sqlite3.Error | None = None

    def ensure_going_on(self) -> None:
        """Some errors (full disk, I/O) end the whole transaction; SQLite would then commit each further statement by itself."""
        if not self._connection.in_transaction:
            raise self._fatal or _TransactionEnded

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        return max(self._run(sql, parameters).rowcount, 0)

    def fetch_one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        cursor = self._run(sql, parameters)
        row: Row | None = cursor.fetchone()
        cursor.close()  # an unfinished statement (RETURNING) would keep the transaction from committing
        return row

    def fetch_all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        return self._run(sql, parameters).fetchall()

    def _run(self, sql: str, parameters: Sequence[Value]) -> sqlite3.Cursor:
        self.ensure_going_on()
        try:
            return self._connection.execute(sql, parameters)
        except UnicodeEncodeError:
            return self._connection.execute(sql, [_well_formed(value) for value in parameters])
        except sqlite3.Error as error:
            if not self._connection.in_transaction:
                self._fatal = error
            raise


def _well_formed(value: Value) -> Value:
    """Lone surrogates, which UTF-8 has no form for, become U+FFFD."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value


def carry_out(works: Sequence[Work], connection: sqlite3.Connection) -> Report:
    """Run works in order and commit them with one flush.

    When the transaction as a whole cannot be kept, each work is run again in one of its own, so that only those fail that must.
    """
    try:
        _begin(connection)
    except sqlite3.Error as error:
        return Report([Outcome(None, error)] * len(works), 0)
    if len(works) == 1:
        return _counted([_finish_alone(connection, works[0])])
    try:
        return Report(_finish_together(connection, works), 1)
    except (sqlite3.Error, _TransactionEnded):
        return _counted([_alone(connection, work) for work in works])
    finally:
        _roll_back(connection)


def read(work: Work, connection: sqlite3.Connection) -> Any:
    """Run ``work`` on one state of the database.

    Bytes that are no UTF-8, after damage, do not make the other rows of a query unreadable: the work then runs again, with U+FFFD there.
    """
    try:
        return _read(work, connection)
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):  # Python's own error, which has no code
            raise
    connection.text_factory = _tolerant_text
    try:
        return _read(work, connection)
    finally:
        connection.text_factory = str


def _read(work: Work, connection: sqlite3.Connection) -> Any:
    connection.execute("BEGIN")
    try:
        return work(_Statements(connection))
    finally:
        _roll_back(connection)


def _counted(alone: list[Outcome]) -> Report:
    return Report(alone, sum(1 for outcome in alone if outcome.error is None))


def _begin(connection: sqlite3.Connection) -> None:
    _roll_back(connection)
    connection.execute("BEGIN IMMEDIATE")


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _alone(connection: sqlite3.Connection, work: Work) -> Outcome:
    try:
        _begin(connection)
    except sqlite3.Error as error:
        return Outcome(None, error)
    return _finish_alone(connection, work)


def _finish_alone(connection: sqlite3.Connection, work: Work) -> Outcome:
    statements = _Statements(connection)
    try:
        value = work(statements)
        statements.ensure_going_on()
        connection.execute("COMMIT")
    except BaseException as error:
        # Handed to the caller, whose work it is.
        _roll_back(connection)
        return Outcome(None, error)
    return Outcome(value)


def _finish_together(connection: sqlite3.Connection, works: Sequence[Work]) -> list[Outcome]:
    outcomes = [_in_savepoint(connection, work) for work in works]
    connection.execute("COMMIT")
    return outcomes


def _in_savepoint(connection: sqlite3.Connection, work: Work) -> Outcome:
    connection.execute("SAVEPOINT work")
    statements = _Statements(connection)
    try:
        outcome = Outcome(work(statements))
    except BaseException as error:
        # Handed to the caller, whose work it is.
        outcome = Outcome(None, error)
    statements.ensure_going_on()
    if outcome.error is not None:
        connection.execute("ROLLBACK TO work")
    connection.execute("RELEASE work")
    return outcome
