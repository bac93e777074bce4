"""Schema versions: one per slice, so that slices come and go without knowing of each other."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from features.contracts.database import Migrations
from features.contracts.errors import OperatorMustAct

__all__ = ["migrate", "refuse_newer", "schema_versions"]

_VERSIONS = "CREATE TABLE IF NOT EXISTS schema_versions (slice TEXT PRIMARY KEY, version INTEGER NOT NULL)"


def schema_versions(connection: sqlite3.Connection) -> Mapping[str, int] | None:
    """Slice to version, the number of steps applied; None where the file has never been ours."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_versions'").fetchone()
    return dict(connection.execute("SELECT slice, version FROM schema_versions")) if known else None


def refuse_newer(found: Mapping[str, int], migrations: Sequence[Migrations], path: Path) -> None:
    """Slices that nobody registered are no concern: a feature that is switched off keeps its tables.

    Raises:
        OperatorMustAct: the file was written by a newer version of the program.
    """
    for slice_ in migrations:
        version = found.get(slice_.slice, 0)
        if version > len(slice_.steps):
            raise OperatorMustAct(
                f"The database {path} has version {version} of the {slice_.slice} tables and this program knows versions up to "
                f"{len(slice_.steps)}. Run the newer program, or put {path.name}.before-upgrade, or a backup, in the file's place."
            )


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migrations]) -> None:
    """Apply all missing steps in one transaction: an upgrade happens as a whole or not at all."""
    found = schema_versions(connection) or {}
    if all(found.get(slice_.slice) == len(slice_.steps) for slice_ in migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_VERSIONS)
        for slice_ in migrations:
            _apply(connection, slice_, found.get(slice_.slice, 0))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply(connection: sqlite3.Connection, slice_: Migrations, done: int) -> None:
    for number, step in enumerate(slice_.steps[done:], done + 1):
        for statement in step:
            try:
                connection.execute(statement)
            except sqlite3.Error as error:
                error.add_note(f"while bringing the {slice_.slice} tables to version {number}")
                raise
    connection.execute(
        "INSERT INTO schema_versions VALUES (?, ?) ON CONFLICT (slice) DO UPDATE SET version = excluded.version",
        (slice_.slice, len(slice_.steps)),
    )
