"""Sums of tokens and money."""

import asyncio
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from features.contracts.database import Transaction
from features.contracts.messages import Cost, Usage
from features.contracts.testing import FakeClock
from features.storage import Database
from features.usage import USAGE_MIGRATIONS, UsageLedger
from features.usage.ledger import UsageRow

DAY = date(2026, 1, 5)
CALL = Usage(input=10, output=5, cache_read=100, cache_write=20, total_tokens=135, cost=Cost(input=0.1, output=0.15, total=0.25))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(tmp_path / "state.db", [USAGE_MIGRATIONS]) as opened:
        yield opened


@pytest.fixture
def ledger(database: Database) -> UsageLedger:
    return UsageLedger(database, FakeClock())


async def test_nothing_is_spent_at_first(ledger: UsageLedger) -> None:
    """Zero, not an error: a new chat asks too."""
    assert await ledger.spent("web:a", DAY) == 0.0
    assert await ledger.totals("web:a", DAY) == []


async def test_calls_add_up_per_place_day_and_model(database: Database, ledger: UsageLedger) -> None:
    """One row each, the dearest model of a day first; calls at the same time are all counted."""
    cheap = Usage(input=1, output=1, total_tokens=2)
    await asyncio.gather(
        *(database.write(ledger.record_work("web:a", "p/big", CALL, day=DAY)) for _ in range(4)),
        database.write(ledger.record_work("web:a", "p/small", cheap, day=DAY)),
        database.write(ledger.record_work("web:a", "p/big", CALL, day=DAY + timedelta(days=1))),
        database.write(ledger.record_work("web:b", "p/big", CALL, day=DAY)),
    )

    assert await ledger.spent("web:a", DAY) == 1.0
    assert await ledger.spent("web:b", DAY) == 0.25
    big = UsageRow(day=DAY, model="p/big", calls=4, input=40, output=20, cache_read=400, cache_write=80, cost=1.0)
    small = UsageRow(day=DAY, model="p/small", calls=1, input=1, output=1, cache_read=0, cache_write=0, cost=0.0)
    rows = await ledger.totals("web:a", DAY)
    assert rows[:2] == [big, small]
    assert [(row.day, row.calls) for row in rows[2:]] == [(DAY + timedelta(days=1), 1)]


async def test_totals_begin_at_a_day(database: Database, ledger: UsageLedger) -> None:
    """The chart of a week asks for seven days, across a change of year too."""
    for day in (date(2025, 12, 30), date(2025, 12, 31), date(2026, 1, 1)):
        await database.write(ledger.record_work("web:a", "p/m", CALL, day=day))

    assert [row.day for row in await ledger.totals("web:a", date(2025, 12, 31))] == [date(2025, 12, 31), date(2026, 1, 1)]


async def test_a_call_is_counted_with_what_it_belongs_to_or_not_at_all(database: Database, ledger: UsageLedger) -> None:
    """An answer that was not stored is not counted either."""
    count = ledger.record_work("web:a", "p/m", CALL, day=DAY)

    def answer(transaction: Transaction) -> None:
        count(transaction)
        raise LookupError("not stored")

    with pytest.raises(LookupError):
        await database.write(answer)

    assert await ledger.totals("web:a", DAY) == []


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0])
async def test_figures_that_make_no_sense_do_not_keep_an_answer_from_being_stored(
    database: Database, ledger: UsageLedger, cost: float
) -> None:
    """A provider may report anything; sums stay usable."""
    odd = Usage(input=10**40, output=-5, total_tokens=1, cost=Cost(total=cost))
    for _ in range(2):
        await database.write(ledger.record_work("web:a", "p/m", odd, day=DAY))
    await database.write(ledger.record_work("web:a", "p/m", CALL, day=DAY))

    assert await ledger.spent("web:a", DAY) == 0.25
    (row,) = await ledger.totals("web:a", DAY)
    assert (row.calls, row.output) == (3, 5)
    assert isinstance(row.input, int)
