"""A scheduler over a database, with a clock that stands until it is told to move and a host in memory."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from features.contracts.chat import Address, DueRun
from features.contracts.database import Database
from features.contracts.jobs import JobOrigin, RunEnd
from features.contracts.testing import FakeClock, sequential_ids
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.scheduler import SCHEDULER_MIGRATIONS, JobScheduler, SchedulerOptions
from features.scheduler.job import Job
from features.scheduler.testing import HANDED_MIGRATIONS, MemoryDelivery
from tests.bot.memory_database import MemoryDatabase

__all__ = ["CHAT", "DAY", "HOUR", "MINUTE", "START", "Rig", "eventually", "opened"]

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)  # a Monday
CHAT = Address("loop", "1")
MINUTE, HOUR, DAY = 60, 3600, 86_400


async def eventually(holds: Callable[[], object]) -> None:
    """Wait for what happens on another thread, or in another process."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - neither sets an event here
            await asyncio.sleep(0.002)


class Rig:
    """The chats end each run at once with ``answers``; None leaves that to the test."""

    def __init__(self, database: Database, folder: Path, clock: FakeClock, delivery: MemoryDelivery, **options: Any) -> None:
        self.database = database
        self.clock = clock
        self.delivery = delivery
        self.answers: RunEnd | None = "done"
        redactor = SecretRedactor()
        policy = ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ=os.environ)
        self.scheduler = JobScheduler(
            database, delivery, ProcessRunner(policy, redactor),
            SchedulerOptions(look_at_clock_every=timedelta(hours=6), **{"scripts": "everybody", **options}), clock=clock, ids=_ids,
        )  # fmt: skip
        delivery.on_begin = self._begun

    def _begun(self, run: DueRun) -> None:
        if self.answers is not None:
            self.scheduler.run_ended(run.id, self.answers, "the model was away" if self.answers == "failed" else "")

    async def start(self) -> None:
        await self.scheduler.recover()
        self.scheduler.start()

    async def schedule(self, words: str, address: Address = CHAT, **origin: Any) -> Job:
        """Say ``/schedule`` and give the job that comes of it."""
        await self.scheduler.commands.schedule(address, words, JobOrigin(**origin))
        return (await self.scheduler.book.list(address.place))[-1]

    async def job(self, job_id: str) -> Job:
        return await self.scheduler.book.get(job_id)

    @property
    def texts(self) -> list[str]:
        return [run.text for run in self.delivery.begun]

    async def until(self, moment: str) -> None:
        """Let time pass until a moment in UTC."""
        await self.clock.advance((datetime.fromisoformat(moment).replace(tzinfo=UTC) - self.clock.now()).total_seconds())


_ids = sequential_ids("run")


@asynccontextmanager
async def opened(
    folder: Path,
    *,
    database: Database | None = None,
    clock: FakeClock | None = None,
    delivery: MemoryDelivery | None = None,
    **options: Any,
) -> AsyncIterator[Rig]:
    """A scheduler at work; leaving ends it where it is."""
    own = MemoryDatabase(SCHEDULER_MIGRATIONS, HANDED_MIGRATIONS) if database is None else None
    clock = clock or FakeClock(START)
    rig = Rig(database or own, folder, clock, delivery or MemoryDelivery(folder), **options)  # type: ignore[arg-type]
    await rig.start()
    try:
        yield rig
    finally:
        await rig.scheduler.close()
        if own is not None:
            own.close()
