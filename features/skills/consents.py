"""What people decided about the skills and templates in a place's own folder."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from features.contracts.clock import Clock
from features.contracts.database import Database, Migrations, Transaction
from features.contracts.sessions import TransactionWork
from features.skills.records import Kind

__all__ = ["SKILL_MIGRATIONS", "Choice", "Consents", "Decision"]

SKILL_MIGRATIONS = Migrations(
    slice="skills",
    steps=(
        (
            """
            CREATE TABLE skill_consents (
                place TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
                choice TEXT NOT NULL, decided_by TEXT NOT NULL, decided_at TEXT NOT NULL,
                PRIMARY KEY (place, kind, name)
            )
            """,
        ),
    ),
)

Choice = Literal["asked", "allowed", "refused"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """It holds for the content with this digest and no other."""

    digest: str
    choice: Choice


class Consents:
    """One decision for each name in a place; another content of that name is a new question."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, place: str) -> Mapping[tuple[Kind, str], Decision]:
        rows = await self._database.read(
            lambda transaction: transaction.fetch_all("SELECT kind, name, digest, choice FROM skill_consents WHERE place = ?", (place,))
        )
        return {(row[0], row[1]): Decision(digest=row[2], choice=row[3]) for row in rows}

    async def decide(self, place: str, kind: Kind, name: str, digest: str, choice: Choice, *, by: str) -> None:
        values = (place, kind, name, digest, choice, by, self._clock.now().isoformat())

        def work(transaction: Transaction) -> None:
            transaction.execute(
                "INSERT INTO skill_consents (place, kind, name, digest, choice, decided_by, decided_at) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (place, kind, name) DO UPDATE SET digest = excluded.digest, choice = excluded.choice, "
                "decided_by = excluded.decided_by, decided_at = excluded.decided_at",
                values,
            )

        await self._database.write(work)

    async def claim_question(self, place: str, kind: Kind, name: str, digest: str) -> bool:
        """Whether this content still has to be asked about; whoever is told so is to ask."""
        values = (place, kind, name, digest, self._clock.now().isoformat())

        def work(transaction: Transaction) -> int:
            return transaction.execute(
                "INSERT INTO skill_consents (place, kind, name, digest, choice, decided_by, decided_at) "
                "VALUES (?, ?, ?, ?, 'asked', '', ?) "
                "ON CONFLICT (place, kind, name) DO UPDATE SET digest = excluded.digest, choice = excluded.choice, "
                "decided_by = excluded.decided_by, decided_at = excluded.decided_at WHERE skill_consents.digest <> excluded.digest",
                values,
            )

        return await self._database.write(work) > 0

    def move(self, old: str, new: str) -> TransactionWork:
        """SQL that follows a place to its new address."""

        def work(transaction: Transaction) -> None:
            transaction.execute(
                "INSERT INTO skill_consents (place, kind, name, digest, choice, decided_by, decided_at) "
                "SELECT ?, kind, name, digest, choice, decided_by, decided_at FROM skill_consents WHERE place = ? "
                "ON CONFLICT (place, kind, name) DO UPDATE SET digest = excluded.digest, choice = excluded.choice, "
                "decided_by = excluded.decided_by, decided_at = excluded.decided_at",
                (new, old),
            )
            transaction.execute("DELETE FROM skill_consents WHERE place = ?", (old,))

        return work
