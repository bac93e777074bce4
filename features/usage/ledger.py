"""The sums and how they grow."""

import math
from datetime import date

import msgspec

from features.contracts.chat import Address
from features.contracts.clock import Clock, unix_ms
from features.contracts.database import Database, Migrations, Transaction, Value
from features.contracts.messages import Usage
from features.contracts.sessions import TransactionWork

__all__ = ["USAGE_MIGRATIONS", "UsageLedger", "UsageRow"]

USAGE_MIGRATIONS = Migrations(
    slice="usage",
    steps=(
        (
            """
            CREATE TABLE usage (
                place TEXT NOT NULL,
                day TEXT NOT NULL,
                model TEXT NOT NULL,
                calls BIGINT NOT NULL,
                input BIGINT NOT NULL,
                output BIGINT NOT NULL,
                cache_read BIGINT NOT NULL,
                cache_write BIGINT NOT NULL,
                cost DOUBLE PRECISION NOT NULL,
                counted_at BIGINT NOT NULL,
                PRIMARY KEY (place, day, model)
            )
            """,
        ),
    ),
)

_COUNT = """
    INSERT INTO usage (place, day, model, calls, input, output, cache_read, cache_write, cost, counted_at)
    VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (place, day, model) DO UPDATE SET
        calls = usage.calls + 1,
        input = usage.input + excluded.input,
        output = usage.output + excluded.output,
        cache_read = usage.cache_read + excluded.cache_read,
        cache_write = usage.cache_write + excluded.cache_write,
        cost = usage.cost + excluded.cost,
        counted_at = excluded.counted_at
"""

_ADD_TO_ANOTHER = """
    INSERT INTO usage (place, day, model, calls, input, output, cache_read, cache_write, cost, counted_at)
    SELECT ?, day, model, calls, input, output, cache_read, cache_write, cost, counted_at FROM usage WHERE place = ?
    ON CONFLICT (place, day, model) DO UPDATE SET
        calls = usage.calls + excluded.calls,
        input = usage.input + excluded.input,
        output = usage.output + excluded.output,
        cache_read = usage.cache_read + excluded.cache_read,
        cache_write = usage.cache_write + excluded.cache_write,
        cost = usage.cost + excluded.cost
"""

# A provider that makes figures up must not overflow a sum; no call has this many tokens.
_MAX_TOKENS = 10**12


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one model used in a place on one day; tokens, and US dollars in ``cost``. ``input`` excludes what the cache served."""

    day: date
    model: str
    calls: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float


class UsageLedger:
    """Counts calls and adds them up. The clock only notes when a row was last counted, for whoever looks into the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def record_work(self, place: str, model: str, usage: Usage, *, day: date) -> TransactionWork:
        """Count one call in the transaction of something else.

        Args:
            model: its reference, ``provider/id``.
            day: the date in the place's zone.
        """
        tokens = [min(max(count, 0), _MAX_TOKENS) for count in (usage.input, usage.output, usage.cache_read, usage.cache_write)]
        cost = usage.cost.total if math.isfinite(usage.cost.total) and usage.cost.total > 0 else 0.0
        parameters: tuple[Value, ...] = (place, day.isoformat(), model, *tokens, cost, unix_ms(self._clock.now()))

        def work(transaction: Transaction) -> None:
            transaction.execute(_COUNT, parameters)

        return work

    async def record(self, place: str, model: str, usage: Usage, *, day: date) -> None:
        """Count one call by itself; returns when it is on the disk."""
        await self._database.write(self.record_work(place, model, usage, day=day))

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        def work(transaction: Transaction) -> None:
            transaction.execute(_ADD_TO_ANOTHER, (str(new.place), str(old.place)))
            transaction.execute("DELETE FROM usage WHERE place = ?", (str(old.place),))

        return work

    def place_moved(self, old: Address, new: Address) -> None:
        """Nothing is kept in memory."""

    async def spent(self, place: str, day: date) -> float:
        """US dollars of all models."""
        row = await self._database.read(
            lambda transaction: transaction.fetch_one(
                "SELECT COALESCE(SUM(cost), 0.0) FROM usage WHERE place = ? AND day = ?", (place, day.isoformat())
            )
        )
        assert row is not None
        return float(row[0])

    async def totals(self, place: str, since: date) -> list[UsageRow]:
        """Rows from ``since`` on, oldest day first, the dearest model of a day first."""
        rows = await self._database.read(
            lambda transaction: transaction.fetch_all(
                "SELECT day, model, calls, input, output, cache_read, cache_write, cost FROM usage"
                " WHERE place = ? AND day >= ? ORDER BY day, cost DESC, model",
                (place, since.isoformat()),
            )
        )
        return [_row(*row) for row in rows]


def _row(day: str, model: str, calls: int, read: int, written: int, cache_read: int, cache_write: int, cost: float) -> UsageRow:
    return UsageRow(
        day=date.fromisoformat(day),
        model=model,
        calls=calls,
        input=read,
        output=written,
        cache_read=cache_read,
        cache_write=cache_write,
        cost=cost,
    )
