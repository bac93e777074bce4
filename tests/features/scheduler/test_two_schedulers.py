"""Two schedulers over one database: what falls due runs once, whoever is quicker."""

import asyncio
from datetime import timedelta
from pathlib import Path

from features.contracts.chat import Address
from features.contracts.testing import FakeClock
from features.scheduler import SCHEDULER_MIGRATIONS
from features.scheduler.testing import HANDED_MIGRATIONS, MemoryDelivery
from features.storage import Database
from tests.features.scheduler.rig import HOUR, MINUTE, START, eventually, opened

JOBS = 40
DUE = 200


async def test_of_two_schedulers_one_wins_each_run(tmp_path: Path) -> None:
    """The claim is the job's move to its next time together with a run that is unique for job and time."""
    path = tmp_path / "state.db"
    migrations = (SCHEDULER_MIGRATIONS, HANDED_MIGRATIONS)
    clock = FakeClock(START)
    one, two = MemoryDelivery(tmp_path), MemoryDelivery(tmp_path)
    async with (
        Database(path, migrations) as database,
        Database(path, migrations) as other,
        opened(tmp_path, database=database, clock=clock, delivery=one, instance="one") as first,
        opened(tmp_path, database=other, clock=clock, delivery=two, instance="two") as second,
    ):
        for number in range(JOBS):
            await first.schedule("every hour look", Address("loop", str(number)))
        second.scheduler._changed.set()  # as its own look at the clock would
        await asyncio.sleep(0.05)
        for hour in range(1, 4):
            await clock.advance(HOUR)
            await eventually(lambda hour=hour: len(one.begun) + len(two.begun) >= hour * JOBS)  # type: ignore[misc]
        for rig in (first, second):
            await eventually(lambda rig=rig: not rig.scheduler._flights)  # type: ignore[misc]
        runs = await database.read(lambda t: t.fetch_all("SELECT job_id, due_at, state FROM job_runs"))

    ids = [run.id for run in (*one.begun, *two.begun)]
    assert len(set(ids)) == len(ids) == 3 * JOBS
    assert len({(job, due) for job, due, _ in runs}) == len(runs) == 3 * JOBS
    assert {state for *_, state in runs} == {"done"}
    assert one.begun
    assert two.begun


async def test_hundreds_that_are_due_at_once_all_run_within_their_concurrency(tmp_path: Path) -> None:
    """Never more than four at a time, and none is left."""
    delivery = MemoryDelivery(tmp_path)
    async with (
        Database(tmp_path / "state.db", (SCHEDULER_MIGRATIONS, HANDED_MIGRATIONS)) as database,
        opened(tmp_path, database=database, delivery=delivery) as rig,
    ):
        rig.answers = None
        book, at = rig.scheduler.book, START + timedelta(minutes=1)
        await asyncio.gather(*(book.remind(Address("loop", str(number)), "k", at=at, text="wake up") for number in range(DUE)))
        most = done = 0
        await rig.clock.advance(MINUTE)
        while done < DUE:
            await eventually(lambda done=done: len(delivery.begun) > done)  # type: ignore[misc]
            most = max(most, len(rig.scheduler._flights))
            for run in delivery.begun[done:]:
                rig.scheduler.run_ended(run.id, "done")
                done += 1

        assert most <= 4
        assert len({run.job_id for run in delivery.begun}) == DUE
