"""SQLite's errors in the house's own terms."""

import sqlite3
from pathlib import Path
from typing import NoReturn

from features.contracts.errors import OperatorMustAct, PumiceError, RetryLater

__all__ = ["closed", "damaged", "forbidden", "raise_translated", "translated"]

_PRIMARY = 0xFF  # an extended result code holds the primary one in its low byte


def closed() -> RuntimeError:
    return RuntimeError("the database is closed")


def damaged(path: Path, what: str) -> OperatorMustAct:
    return OperatorMustAct(
        f"The database {path} is damaged ({what}); it was left as it is. "
        f"Move {path.name}, {path.name}-wal and {path.name}-shm away together, put a backup in their place if there is one, and restart."
    )


def forbidden(path: Path, error: Exception) -> OperatorMustAct:
    return OperatorMustAct(
        f"The database {path} cannot be opened for writing ({error}). "
        f"Let the user that runs the host read and write it and its folder {path.parent}."
    )


def raise_translated(error: BaseException, path: Path) -> NoReturn:
    """Raise what a caller should see: the translation, or the error itself where it is the caller's own."""
    fault = translated(error, path)
    if fault is None:
        raise error
    raise fault from error


def translated(error: BaseException, path: Path) -> PumiceError | None:
    """None for what is no fault of the file or its disk: a wrong statement, a constraint, a work's own error."""
    if not isinstance(error, sqlite3.Error):
        return None
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & _PRIMARY
    match code:
        case sqlite3.SQLITE_FULL:
            return OperatorMustAct(f"There is no space left to write {path}. Free some on its disk; writing then goes on by itself.")
        case sqlite3.SQLITE_IOERR:
            return OperatorMustAct(
                f"The disk under {path} failed ({error}). See that it is healthy and has space; writing goes on once it works again."
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(path, str(error))
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return forbidden(path, error)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return RetryLater(f"another program holds the database {path}; try again when it is done")
        case _:
            return None
