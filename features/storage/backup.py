"""Copying the database while it is used."""

import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from features.contracts.errors import OperatorMustAct
from features.storage.connection import open_connection
from features.storage.faults import raise_translated

__all__ = ["back_up"]


async def back_up(source: Path, target: Path) -> None:
    """Copy one committed state of ``source``; ``target`` changes in one step, and only when all went well."""
    if target.exists() and target.samefile(source):
        raise OperatorMustAct(f"{target} is the database itself. Choose another file for the backup.")
    partial_copy = target.with_name(f".{target.name}.partial")
    try:
        # A connection of its own: a long copy holds up neither the writer nor the pool.
        connection = await open_connection(source, partial(_copy, target=partial_copy))
        await connection.shut()
        partial_copy.replace(target)
        _flush_folder(target.parent)
    except OSError as error:
        raise OperatorMustAct(f"The backup {target} cannot be written ({error}). Choose a folder that the host may write to.") from error
    except sqlite3.Error as error:
        raise_translated(error, target)
    finally:
        partial_copy.unlink(missing_ok=True)


def _copy(connection: sqlite3.Connection, *, target: Path) -> None:
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(target)) as copy:
        # All pages in one step are one state; several steps would begin anew with every commit in between.
        connection.backup(copy, pages=-1)
        # A copy that needs no -wal beside it can be moved about as one file.
        copy.execute("PRAGMA journal_mode = DELETE")


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
