"""Looking at the file before anything may write to it."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from features.contracts.database import Migrations
from features.contracts.errors import OperatorMustAct
from features.storage.connection import open_connection
from features.storage.faults import damaged
from features.storage.migration import refuse_newer, schema_versions

__all__ = ["inspect"]

_MAGIC = b"SQLite format 3\0"

# Every page is read at a start up to this size, which takes a small part of a second; a larger file is checked by `check`, on demand, since
# its damaged pages are reported when they are met and a minute of reading at every start would be worse.
_QUICK_CHECK_BYTES = 64 * 1024 * 1024


async def inspect(path: Path, migrations: Sequence[Migrations]) -> bool:
    """Refuse a file that cannot be used, leaving its bytes alone. No file, or an empty one, is fine.

    Returns:
        whether there is something in it that is to be upgraded.

    Raises:
        OperatorMustAct: it is damaged, another program's, or newer than ``migrations``.
    """
    log, journal = path.with_name(path.name + "-wal"), path.with_name(path.name + "-journal")
    if path.is_dir():
        raise OperatorMustAct(f"{path} is a folder, and the database is to be a file. Move the folder away or set another data_dir.")
    if _size(path) == 0:
        if _size(log) > 0:  # SQLite would delete the log, and with it the only copy of what was committed last
            raise damaged(path, f"it is missing or empty while {log.name} holds data")
        return False
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise damaged(path, "it does not begin as a SQLite database does")
    if _size(journal) > 0:
        mode = "mode=rw"  # a crash in the very first commit: only a writer can undo it, and SQLite does so by itself
    elif _size(log) > 0:
        mode = "mode=ro"
    else:
        mode = "mode=ro&immutable=1"  # makes no -wal and no -shm beside the file
    found: dict[str, int] = {}
    connection = await open_connection(
        f"{path.as_uri()}?{mode}", lambda opened: found.update(_examine(opened, path=path, migrations=migrations)), uri=True
    )
    await connection.shut()
    return bool(found) and any(found.get(slice_.slice, 0) < len(slice_.steps) for slice_ in migrations)


def _examine(connection: sqlite3.Connection, *, path: Path, migrations: Sequence[Migrations]) -> Mapping[str, int]:
    """The versions of the tables that are there."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if path.stat().st_size <= _QUICK_CHECK_BYTES:
        problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
        if problems != ["ok"]:
            raise damaged(path, problems[0])
    found = schema_versions(connection)
    if found is None and tables:
        raise OperatorMustAct(f"{path} is the database of another program. Set another data_dir.")
    refuse_newer(found or {}, migrations, path)
    return found or {}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
