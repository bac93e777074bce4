"""Which extensions in a place's folder an owner trusts."""

from datetime import datetime

import msgspec

from features.contracts.clock import Clock
from features.contracts.database import Database, Migrations, Transaction

__all__ = ["EXTENSION_MIGRATIONS", "ExtensionTrust", "TrustDecision"]

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
        ),
    ),
)


class TrustDecision(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is what the extension was called then; the digest alone counts."""

    digest: str
    name: str
    trusted_by: str
    trusted_at: datetime


class ExtensionTrust:
    """Decisions are about a content in a place: the same files elsewhere, or other files here, are asked about again."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def decisions(self, place: str) -> dict[str, TrustDecision]:
        """What is trusted in a place, by digest."""
        rows = await self._database.read(
            lambda transaction: transaction.fetch_all(
                "SELECT digest, name, trusted_by, trusted_at FROM extension_trust WHERE place = ?", (place,)
            )
        )
        return {
            row[0]: TrustDecision(digest=row[0], name=row[1], trusted_by=row[2], trusted_at=datetime.fromisoformat(row[3])) for row in rows
        }

    async def trust(self, place: str, digest: str, *, name: str, by: str) -> None:
        """What an extension of this name was before is not trusted any more."""
        values = (place, digest, name, by, self._clock.now().isoformat())

        def work(transaction: Transaction) -> None:
            transaction.execute("DELETE FROM extension_trust WHERE place = ? AND name = ?", (place, name))
            transaction.execute(
                "INSERT INTO extension_trust (place, digest, name, trusted_by, trusted_at) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (place, digest) DO UPDATE SET name = excluded.name, trusted_by = excluded.trusted_by, "
                "trusted_at = excluded.trusted_at",
                values,
            )

        await self._database.write(work)

    async def forget(self, place: str, digest: str) -> bool:
        """Whether there was something to forget."""
        return bool(
            await self._database.write(
                lambda transaction: transaction.execute("DELETE FROM extension_trust WHERE place = ? AND digest = ?", (place, digest))
            )
        )
