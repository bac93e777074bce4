"""What 10,000 jobs in 1,000 chats cost: making one, starting with them, waiting, and 1,000 that are due at once.

``python -m benchmarks.scheduler``; the base line of a job is the same row put by a bare transaction of the same database.
"""

import asyncio
import os
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.measure import percentile, process_cpu, report
from bot.clock import SystemClock
from bot.ids import new_id
from features.contracts.chat import Address, DueRun
from features.contracts.jobs import JobOrigin
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.scheduler import SCHEDULER_MIGRATIONS, JobScheduler, SchedulerOptions
from features.scheduler.testing import HANDED_MIGRATIONS, MemoryDelivery
from features.storage import Database

CHATS, EACH, DUE, WAIT_S = 1000, 10, 1000, 10


def made(database: Database, delivery: MemoryDelivery) -> JobScheduler:
    redactor = SecretRedactor()
    processes = ProcessRunner(ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ=os.environ), redactor)
    scheduler = JobScheduler(database, delivery, processes, SchedulerOptions(), clock=SystemClock(), ids=new_id)

    def answer(run: DueRun) -> None:
        asyncio.get_running_loop().call_later(0.001, scheduler.run_ended, run.id, "done")

    delivery.on_begin = answer
    return scheduler


async def fill(database: Database, scheduler: JobScheduler) -> None:
    origin = JobOrigin(by="loop:1")
    insert = "INSERT INTO handed VALUES (?, ?, ?)"
    began = time.process_time()
    for number in range(1000):
        await database.write(lambda t, number=number: t.execute(insert, (str(number), "x", "y" * 400)))  # type: ignore[misc]
    bare = (time.process_time() - began) / 1000
    began = time.process_time()
    for chat in range(CHATS):
        for hour in range(EACH):
            await scheduler.commands.make(Address("loop", str(chat)), f"every weekday at {hour + 9}:{chat % 60:02} sum up", origin)
    await scheduler.book.settle()
    spent = (time.process_time() - began) / (CHATS * EACH)
    report("CPU to make a job, jobs.json included", f"{spent * 1000:.2f} ms", "<= 1 ms")
    report("the same against a bare transaction", f"{spent / bare:.1f} x", "a handful")


async def wait(scheduler: JobScheduler) -> None:
    before = process_cpu(os.getpid())
    await asyncio.sleep(WAIT_S)
    share = (process_cpu(os.getpid()) - before) / WAIT_S
    report(f"CPU while nothing is due, of one core, over {WAIT_S} s", f"{share * 100:.2f} %", "< 0.5 %")
    assert scheduler._wake_at is not None


async def burst(database: Database, delivery: MemoryDelivery, scheduler: JobScheduler) -> None:
    at = datetime.now(UTC) + timedelta(seconds=8)
    for chat in range(DUE):
        await scheduler.book.remind(Address("loop", str(chat)), "burst", at=at, text="wake up")
    await scheduler.book.settle()
    await asyncio.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds() - 0.5))
    delivery.begun.clear()
    lags: list[float] = []
    began = time.perf_counter()
    while len(delivery.begun) < DUE:
        tick = time.perf_counter()
        await asyncio.sleep(0.005)
        lags.append(time.perf_counter() - tick - 0.005)
    spent = time.perf_counter() - began - 0.5
    report(f"{DUE} due in the same second, four at a time, all begun within", f"{spent:.1f} s", "a few seconds")
    report(
        "the loop held up meanwhile, 99 % and longest", f"{percentile(lags, 0.99) * 1000:.0f}, {max(lags) * 1000:.0f} ms", "<= 20, <= 50 ms"
    )


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with Database(folder / "state.db", (SCHEDULER_MIGRATIONS, HANDED_MIGRATIONS)) as database:
            delivery = MemoryDelivery(folder)
            scheduler = made(database, delivery)
            await fill(database, scheduler)
            await scheduler.close()
            scheduler = made(database, delivery)
            began = time.perf_counter()
            await scheduler.recover()
            scheduler.start()
            while scheduler._wake_at is None:  # noqa: ASYNC110 - until it knows when the next one is due
                await asyncio.sleep(0.001)
            report("start with 10,000 jobs, until the next one is known", f"{(time.perf_counter() - began) * 1000:.0f} ms", "< 1000 ms")
            await asyncio.sleep(15)  # jobs.json of every chat is looked over once
            await wait(scheduler)
            await burst(database, delivery, scheduler)
            await scheduler.close()


if __name__ == "__main__":
    asyncio.run(main())
