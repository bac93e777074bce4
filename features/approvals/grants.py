"""What was allowed for good, chat by chat."""

import hashlib
import json
import shlex
from collections.abc import Sequence
from datetime import datetime

import msgspec

from features.contracts.database import Database, Migrations, Transaction
from features.contracts.errors import UserMustAct
from features.contracts.sessions import TransactionWork

__all__ = ["APPROVAL_MIGRATIONS", "Grant", "Grants"]

APPROVAL_MIGRATIONS = Migrations(
    slice="approvals",
    steps=(
        (
            """
            CREATE TABLE approvals (
                place TEXT NOT NULL,
                id TEXT NOT NULL,
                tool TEXT NOT NULL,
                argv TEXT,
                granted_at TEXT NOT NULL,
                PRIMARY KEY (place, id)
            )
            """,
        ),
    ),
)

_MOST = 200
_ID_CHARS = 10


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """``argv`` is the command that never asks; None stands for every call of the tool."""

    tool: str
    argv: tuple[str, ...] | None

    @property
    def id(self) -> str:
        """The same for the same grant, so that a button that removes it never removes another."""
        return hashlib.sha256(json.dumps([self.tool, self.argv]).encode()).hexdigest()[:_ID_CHARS]

    @property
    def command(self) -> str | None:
        """``argv`` as one would type it."""
        return None if self.argv is None else shlex.join(self.argv)


class Grants:
    """The table, a place at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def covers(self, place: str, tool: str, argv: tuple[str, ...] | None) -> bool:
        """Whether a call was allowed for good; ``argv`` None is a call that is no simple command."""
        ids = {Grant(tool=tool, argv=None).id, Grant(tool=tool, argv=argv).id}
        return any(grant.id in ids and grant.tool == tool and grant.argv in (None, argv) for grant in await self.list(place))

    async def list(self, place: str) -> list[Grant]:
        """Oldest first."""
        sql = "SELECT tool, argv FROM approvals WHERE place = ? ORDER BY granted_at, id"
        rows = await self._database.read(lambda t: t.fetch_all(sql, (place,)))
        return [Grant(tool=tool, argv=None if argv is None else tuple(json.loads(argv))) for tool, argv in rows]

    async def add(self, place: str, grant: Grant, at: datetime) -> None:
        """
        Raises:
            UserMustAct: the chat has too many.
        """
        argv = None if grant.argv is None else json.dumps(grant.argv)

        def work(transaction: Transaction) -> bool:
            count = transaction.fetch_one("SELECT COUNT(*) FROM approvals WHERE place = ?", (place,))
            if count is not None and count[0] >= _MOST:
                return False
            transaction.execute(
                "INSERT INTO approvals (place, id, tool, argv, granted_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (place, id) DO NOTHING",
                (place, grant.id, grant.tool, argv, at.isoformat()),
            )
            return True

        if not await self._database.write(work):
            raise UserMustAct(f"This chat has {_MOST} standing approvals already. /approvals shows them; remove some.")

    def move(self, old: str, new: str) -> TransactionWork:
        """SQL that follows a place to its new address."""

        def work(transaction: Transaction) -> None:
            transaction.execute(
                "INSERT INTO approvals (place, id, tool, argv, granted_at) SELECT ?, id, tool, argv, granted_at FROM approvals"
                " WHERE place = ? ON CONFLICT (place, id) DO NOTHING",
                (new, old),
            )
            transaction.execute("DELETE FROM approvals WHERE place = ?", (old,))

        return work

    async def remove(self, place: str, ids: Sequence[str]) -> int:
        """Take grants back; how many there were."""

        def work(transaction: Transaction) -> int:
            return sum(transaction.execute("DELETE FROM approvals WHERE place = ? AND id = ?", (place, each)) for each in ids)

        return await self._database.write(work)
