"""Who was refused, bounded: a row per person and place, with how often and when."""

import logging
from collections import OrderedDict
from datetime import datetime, timedelta

import msgspec

from bot.access.audit import AuditRecord, note
from features.contracts.clock import Clock
from features.contracts.database import Database, Row, Transaction

__all__ = ["Attempt", "Attempts"]

KEPT = 1000
BETWEEN_WRITES = timedelta(minutes=1)

_log = logging.getLogger("pumice.access")


class Attempt(msgspec.Struct, kw_only=True):
    person: str
    place: str
    name: str
    count: int
    first_at: datetime
    last_at: datetime


class Attempts:
    """The audit of refusals. A flood from one person costs one write a minute."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], Attempt] = OrderedDict()
        self._written_at: dict[tuple[str, str], datetime] = {}

    async def load(self) -> None:
        rows: list[Row] = await self._database.read(
            lambda transaction: transaction.fetch_all(
                "SELECT person, place, name, count, first_at, last_at FROM access_attempts ORDER BY last_at"
            )
        )
        self._known = OrderedDict(
            (
                (row[0], row[1]),
                Attempt(
                    person=row[0],
                    place=row[1],
                    name=row[2],
                    count=row[3],
                    first_at=datetime.fromisoformat(row[4]),
                    last_at=datetime.fromisoformat(row[5]),
                ),
            )
            for row in rows
        )

    def latest(self) -> list[Attempt]:
        """The newest first."""
        return list(reversed(self._known.values()))

    def seen_in(self, place: str) -> bool:
        """Whether anybody was refused there before."""
        return any(known == place for _, known in self._known)

    async def note(self, person: str, place: str, name: str) -> bool:
        """Count a refusal; True for the first of this person in this place."""
        now = self._clock.now()
        key = (person, place)
        attempt = self._known.get(key)
        first = attempt is None
        if attempt is None:
            attempt = self._known[key] = Attempt(person=person, place=place, name=name, count=0, first_at=now, last_at=now)
            _log.warning("refused", extra={"facts": {"person": person, "place": place}})
        attempt.count += 1
        attempt.last_at, attempt.name = now, name
        self._known.move_to_end(key)
        if len(self._known) > KEPT:
            oldest, _ = self._known.popitem(last=False)
            self._written_at.pop(oldest, None)
        last_write = self._written_at.get(key)
        if last_write is None or now >= last_write + BETWEEN_WRITES:
            self._written_at[key] = now
            try:
                await self._write(attempt, first=first)
            except BaseException:  # the message comes again, and is then the first once more
                self._written_at.pop(key, None)
                if first:
                    self._known.pop(key, None)
                raise
        return first

    async def forget(self, person: str) -> None:
        """Somebody is admitted now; a later refusal is news again."""
        keys = [key for key in self._known if key[0] == person]
        for key in keys:
            del self._known[key]
            self._written_at.pop(key, None)
        if keys:
            await self._database.write(lambda transaction: transaction.execute("DELETE FROM access_attempts WHERE person = ?", (person,)))

    async def _write(self, attempt: Attempt, *, first: bool) -> None:
        refused = note(AuditRecord(at=attempt.last_at, event="refused", who=attempt.person, detail=_where(attempt)))
        values = (
            attempt.person,
            attempt.place,
            attempt.name,
            attempt.count,
            attempt.first_at.isoformat(),
            attempt.last_at.isoformat(),
        )

        def write(transaction: Transaction) -> None:
            if first:
                refused(transaction)
            transaction.execute(
                "INSERT INTO access_attempts (person, place, name, count, first_at, last_at) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (person, place) DO UPDATE SET name = excluded.name, count = excluded.count, last_at = excluded.last_at",
                values,
            )
            transaction.execute(
                "DELETE FROM access_attempts WHERE last_at < "
                "(SELECT MIN(last_at) FROM (SELECT last_at FROM access_attempts ORDER BY last_at DESC LIMIT ?) AS newest)",
                (KEPT,),
            )

        await self._database.write(write)


def _where(attempt: Attempt) -> str:
    return " ".join(part for part in (attempt.name, f"in {attempt.place}" if attempt.place != attempt.person else "") if part)
