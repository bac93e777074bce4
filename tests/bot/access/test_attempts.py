"""Refusals are recorded, and bounded."""

import pytest

from bot.access import ACCESS_MIGRATIONS
from features.contracts.testing import FakeClock
from tests.bot.access.conftest import STRANGER, Gates, says, says_in_group
from tests.bot.memory_database import MemoryDatabase


async def test_a_refusal_is_recorded_with_who_where_and_how_often(gates: Gates, clock: FakeClock) -> None:
    """Also after a restart, when owners are not told again."""
    access = await gates.open()
    await access.judge(says())
    await clock.advance(61)
    await access.judge(says("x", kind="edit"))
    restarted = await gates.open()

    for gate in (access, restarted):
        (attempt,) = gate.attempts()
        assert (attempt.person, attempt.place, attempt.name, attempt.count) == (STRANGER, "telegram:66", "Eve", 2)
        assert (attempt.last_at - attempt.first_at).total_seconds() == 61
    assert (await restarted.judge(says("again"))).tell_owners is None


async def test_a_flood_from_one_stranger_costs_few_writes(gates: Gates, database: MemoryDatabase) -> None:
    """Strangers must not be able to keep the disk busy."""
    access = await gates.open()
    await access.judge(says())
    before = database.writes
    for _ in range(500):
        await access.judge(says("/start"))

    assert database.writes == before
    assert access.attempts()[0].count == 501


async def test_the_record_is_bounded(gates: Gates, clock: FakeClock) -> None:
    """A crowd must not fill the disk or the memory; the newest stay."""
    access = await gates.open()
    for number in range(1, 1203):
        await clock.advance(1)
        await access.judge(says_in_group(by=f"telegram:{number + 10}"))

    assert len(access.attempts()) == 1000
    assert access.attempts()[0].person == "telegram:1212"
    assert len((await gates.open()).attempts()) == 1000


async def test_a_message_that_cannot_be_recorded_is_not_taken(clock: FakeClock) -> None:
    """The channel keeps it and tries again when the disk has room."""
    database = MemoryDatabase(ACCESS_MIGRATIONS)
    access = await Gates(database, clock).open()
    database.full = OSError("no space left")
    with pytest.raises(OSError, match="no space"):
        await access.judge(says())
    database.full = None
    verdict = await access.judge(says())
    database.close()

    assert verdict.reply
    assert verdict.tell_owners
