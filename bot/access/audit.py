"""What was decided about who may talk, and what was tried; ``pumice pair log`` shows it."""

from datetime import datetime
from typing import Literal

import msgspec

from features.contracts.database import Database, Row, Transaction
from features.contracts.sessions import TransactionWork

__all__ = ["AuditEvent", "AuditLog", "AuditRecord", "note"]

AuditEvent = Literal["refused", "code", "wrong code", "locked out", "admitted", "revoked", "moved"]

_KEPT = 5000


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``who`` is the person or group that it is about, ``by`` whoever did it; the host itself for an empty ``by``."""

    at: datetime
    event: AuditEvent
    who: str
    by: str = ""
    detail: str = ""


class AuditLog:
    """Reads; ``note`` writes, in the transaction of what it records. The last 5,000 records are kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def latest(self, limit: int) -> list[AuditRecord]:
        """The newest first."""
        sql = "SELECT at, event, who, by_whom, detail FROM access_log ORDER BY position DESC LIMIT ?"
        rows = await self._database.read(lambda t: t.fetch_all(sql, (limit,)))
        return [_record(row) for row in rows]


def note(record: AuditRecord) -> TransactionWork:
    """SQL that adds a record."""
    values = (record.at.isoformat(), record.event, record.who, record.by, record.detail)

    def work(transaction: Transaction) -> None:
        transaction.execute(
            "INSERT INTO access_log (position, at, event, who, by_whom, detail)"
            " VALUES ((SELECT coalesce(max(position), 0) + 1 FROM access_log), ?, ?, ?, ?, ?)",
            values,
        )
        transaction.execute("DELETE FROM access_log WHERE position <= (SELECT max(position) FROM access_log) - ?", (_KEPT,))

    return work


def _record(row: Row) -> AuditRecord:
    at, event, who, by, detail = row
    return AuditRecord(at=datetime.fromisoformat(at), event=event, who=who, by=by, detail=detail)
