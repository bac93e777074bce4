"""What owners decided about the extensions of a place."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from features.contracts.clock import Clock
from features.contracts.database import Database, Migrations, Transaction
from features.contracts.sessions import TransactionWork

__all__ = ["EXTENSION_MIGRATIONS", "ExtensionChoices", "PlaceChoices", "TrustDecision"]

EXTENSION_MIGRATIONS = Migrations(
    slice="extensions",
    steps=(
        (
            """
            CREATE TABLE extension_trust (
                place TEXT NOT NULL, digest TEXT NOT NULL, name TEXT NOT NULL, trusted_by TEXT NOT NULL, trusted_at TEXT NOT NULL,
                PRIMARY KEY (place, digest)
            )
            """,
            """
            CREATE TABLE extension_disabled (
                place TEXT NOT NULL, name TEXT NOT NULL, disabled_by TEXT NOT NULL, disabled_at TEXT NOT NULL,
                PRIMARY KEY (place, name)
            )
            """,
        ),
    ),
)


class TrustDecision(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is what the extension was called then; the digest alone counts."""

    digest: str
    name: str
    trusted_by: str
    trusted_at: datetime


class PlaceChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What is trusted in a place, by digest, and the names that are switched off there."""

    trusted: Mapping[str, TrustDecision]
    disabled: frozenset[str]


class ExtensionChoices:
    """Trust is about a content in a place: the same files elsewhere, or other files here, are asked about again."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, place: str) -> PlaceChoices:
        def work(transaction: Transaction) -> PlaceChoices:
            trusted = transaction.fetch_all("SELECT digest, name, trusted_by, trusted_at FROM extension_trust WHERE place = ?", (place,))
            disabled = transaction.fetch_all("SELECT name FROM extension_disabled WHERE place = ?", (place,))
            return PlaceChoices(
                trusted={
                    row[0]: TrustDecision(digest=row[0], name=row[1], trusted_by=row[2], trusted_at=datetime.fromisoformat(row[3]))
                    for row in trusted
                },
                disabled=frozenset(row[0] for row in disabled),
            )

        return await self._database.read(work)

    async def trusted_anywhere(self) -> frozenset[tuple[str, str]]:
        """Place and digest of every decision."""
        rows = await self._database.read(lambda transaction: transaction.fetch_all("SELECT place, digest FROM extension_trust"))
        return frozenset((row[0], row[1]) for row in rows)

    def move(self, old: str, new: str) -> TransactionWork:
        """SQL that follows a place to its new address."""

        def work(transaction: Transaction) -> None:
            transaction.execute(
                "INSERT INTO extension_trust (place, digest, name, trusted_by, trusted_at)"
                " SELECT ?, digest, name, trusted_by, trusted_at FROM extension_trust WHERE place = ? ON CONFLICT DO NOTHING",
                (new, old),
            )
            transaction.execute(
                "INSERT INTO extension_disabled (place, name, disabled_by, disabled_at)"
                " SELECT ?, name, disabled_by, disabled_at FROM extension_disabled WHERE place = ? ON CONFLICT DO NOTHING",
                (new, old),
            )
            transaction.execute("DELETE FROM extension_trust WHERE place = ?", (old,))
            transaction.execute("DELETE FROM extension_disabled WHERE place = ?", (old,))

        return work

    async def trust(self, place: str, digest: str, *, name: str, by: str) -> None:
        """What an extension of this name was before is not trusted any more; if it was disabled, it no longer is."""
        values = (place, digest, name, by, self._clock.now().isoformat())

        def work(transaction: Transaction) -> None:
            transaction.execute("DELETE FROM extension_trust WHERE place = ? AND name = ?", (place, name))
            transaction.execute("DELETE FROM extension_disabled WHERE place = ? AND name = ?", (place, name))
            transaction.execute(
                "INSERT INTO extension_trust (place, digest, name, trusted_by, trusted_at) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (place, digest) DO UPDATE SET name = excluded.name, trusted_by = excluded.trusted_by, "
                "trusted_at = excluded.trusted_at",
                values,
            )

        await self._database.write(work)

    async def disable(self, place: str, name: str, *, by: str) -> None:
        values = (place, name, by, self._clock.now().isoformat())

        def work(transaction: Transaction) -> None:
            transaction.execute(
                "INSERT INTO extension_disabled (place, name, disabled_by, disabled_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", values
            )

        await self._database.write(work)

    async def enable(self, place: str, name: str) -> None:
        await self._database.write(
            lambda transaction: transaction.execute("DELETE FROM extension_disabled WHERE place = ? AND name = ?", (place, name))
        )
