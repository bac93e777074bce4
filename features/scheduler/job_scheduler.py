"""The scheduler: claims what is due, hands it over, and notes what became of it.

::

    due --claimed, in one transaction--> running (its script) --nothing printed--> silent
                                            |                  --failed--> failed
                                            v
    due --claimed and handed over, in one--> handed --> done | silent | failed | stopped
                                            |
                                            +-- the host died --> waits on, if the chat had not begun; else cut, which is told
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from features.contracts.chat import Address, DueRun
from features.contracts.clock import Clock
from features.contracts.database import Database, Row, Transaction
from features.contracts.errors import OperatorMustAct, PumiceError, UserMustAct
from features.contracts.extensions import ExtensionApi, ExtensionSpec
from features.contracts.jobs import JobDelivery, JobOrigin, RunEnd
from features.contracts.places import moved_address
from features.contracts.processes import ProcessRunner
from features.contracts.sessions import TransactionWork
from features.contracts.tools import Tool
from features.scheduler import tables
from features.scheduler.due_runs import cut_notice, due_run, missed_notice
from features.scheduler.heartbeat import HEARTBEAT, keep_heartbeat
from features.scheduler.job import Job, JobRun, next_due
from features.scheduler.job_book import JobBook
from features.scheduler.job_commands import JobCommands
from features.scheduler.jobs_file import shown_job
from features.scheduler.options import SchedulerOptions
from features.scheduler.run_ends import settle_run
from features.scheduler.schedule_tool import ScheduleTool
from features.scheduler.script_runs import ScriptRuns

__all__ = ["JobScheduler"]

log = logging.getLogger("pumice.scheduler")

_AGAIN_S = 15.0


class _Flight(msgspec.Struct, kw_only=True):
    """A run that has begun. ``slot`` says whether it counts for the concurrency; ``arrived`` what is known of its answer already."""

    run: JobRun
    job: Job
    slot: bool
    arrived: tuple[bool, str] | None = None


class JobScheduler:
    """Process-wide. ``recover``, then ``start``; ``close`` ends it, and what its scripts were at is told at the next start.

    Nothing is asked of the database while nothing is due; one wake-up stands for all jobs. A run is claimed by moving its job on and
    putting the run, unique for job and time, in one transaction: of two schedulers over one database one wins.
    """

    def __init__(
        self,
        database: Database,
        delivery: JobDelivery,
        processes: ProcessRunner,
        options: SchedulerOptions,
        *,
        clock: Clock,
        ids: Callable[[], str],
    ) -> None:
        self.options = options
        self.book = JobBook(database, delivery, clock, options, sooner=self._sooner)
        self.commands = JobCommands(self.book, delivery, clock, run_now=self.run_now)
        self._database = database
        self._delivery = delivery
        self._scripts = ScriptRuns(processes, delivery, options)
        self._clock = clock
        self._ids = ids
        self._flights: dict[str, _Flight] = {}
        self._on_the_way: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._wake_at: datetime | None = None
        self._begun_at = clock.now()
        self._leaving = False

    # Life

    async def recover(self) -> None:
        """Find out what became of the runs of an earlier process; before the host takes up what it left unfinished."""
        instance, now = self.options.instance, self._clock.now()
        runs = await self._database.read(lambda t: tables.open_runs(t, instance))
        fates = await self._delivery.fates([run.id for run in runs if run.state == "handed"])
        for run in runs:
            fate = fates.get(run.id, "gone")
            if run.state == "handed" and fate == "waiting":
                job = await self._database.read(partial(tables.find_job, job_id=run.job_id))
                if job is not None:
                    self._flights[run.id] = _Flight(run=run, job=job, slot=False)
                continue
            if fate == "done" or fate == "silent":
                ended = msgspec.structs.replace(run, state=fate, delivery="handed" if fate == "done" else "none", ended_at=now)
            else:
                ended = msgspec.structs.replace(run, state="cut", ended_at=now)
            await self._database.write(partial(self._cut_or_done, run=ended, now=now))
        self._on_the_way = {run.id: run.job_id for run in await self._database.read(tables.undelivered_runs)}

    def start(self) -> None:
        self._begun_at = self._clock.now()
        self._spawn(self._serve(), "scheduler")
        self._spawn(self.book.look_over(), "scheduler look over")

    def leave(self) -> None:
        """Begin nothing more; what is due stays due."""
        self._leaving = True

    async def close(self) -> None:
        self.leave()
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self.book.close()

    # What others ask

    def extension(self, origin: Callable[[Address, str], JobOrigin]) -> ExtensionSpec:
        """What gives each session its ``schedule`` tool.

        Args:
            origin: who speaks at the moment in a chat's session, by its address and id.
        """

        async def activate(api: ExtensionApi) -> None:
            address = Address.parse(api.session.address)
            api.register_tool(self.tool(address, lambda: origin(address, api.session.id)))

        return ExtensionSpec(name="scheduler", activate=activate)

    def tool(self, address: Address, origin: Callable[[], JobOrigin]) -> Tool:
        """The ``schedule`` tool of one session.

        Args:
            origin: who speaks in that session at the moment.
        """
        return ScheduleTool(
            self.book, self._delivery, self._clock, address=address, origin=origin, run_now=self.run_now, scripts=self.options.scripts
        )  # fmt: skip

    async def heartbeat(self, address: Address, *, every_minutes: int, check: str) -> None:
        """Keep the one heartbeat of a place as the configuration wants it; 0 minutes is none. One that was paused stays so."""
        await keep_heartbeat(self.book, address, every_minutes=every_minutes, check=check)

    async def heartbeats(self) -> list[Address]:
        """The chats that have one."""
        return [job.definition.address for job in await self.book.keyed(HEARTBEAT)]

    async def make(self, address: Address, text: str, origin: JobOrigin) -> dict[str, Any]:
        """Make a job as ``/schedule`` does; gives it as ``shown_job`` does."""
        return await self.shown_job((await self.commands.make(address, text, origin)).id)

    async def shown(self, place: Address | None = None) -> list[dict[str, Any]]:
        """Jobs as programs see them."""
        return [shown_job(job) for job in await self.book.list(place)]

    async def shown_job(self, job_id: str) -> dict[str, Any]:
        """One job with its next and last runs."""
        job = await self.book.get(job_id)
        runs = [msgspec.to_builtins(run) for run in await self.book.runs(job.id)]
        return {**shown_job(job), "next_runs": [moment.isoformat() for moment in self.book.upcoming(job)], "runs": runs}

    async def run_now(self, job_id: str) -> None:
        """Run a job once beside its schedule.

        Raises:
            UserMustAct: there is no such job, it is at work, or may not run.
        """
        job = await self.book.get(job_id)
        if any(flight.job.id == job.id for flight in self._flights.values()):
            raise UserMustAct(f"Job {job.id} is at work already.")
        definition = job.definition
        if refusal := self._delivery.refusal(definition.place, by=definition.by, group=definition.group):
            raise UserMustAct(refusal)
        run, prepared = self._new_run(job, self._clock.now())
        if await self._launch(job, run, prepared, lambda transaction: True):
            self.book.changed(definition.place)

    # What the host tells

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        return lambda transaction: tables.move_jobs(transaction, old, new)

    def place_moved(self, old: Address, new: Address) -> None:
        for flight in self._flights.values():
            definition = flight.job.definition
            moved = msgspec.structs.replace(definition, address=moved_address(definition.address, old, new))
            flight.job = msgspec.structs.replace(flight.job, definition=moved)
        self.book.changed(new)

    def run_ended(self, run_id: str, end: RunEnd, error: str = "") -> None:
        """A run that was handed over is over; one that is nobody's is ignored."""
        flight = self._flights.get(run_id)
        if flight is not None:
            self._spawn(self._finish(flight, end, error), f"job {flight.job.id} ended")

    def answer_delivered(self, run_ids: Sequence[str], problem: str | None = None) -> None:
        """The platform has the answer to these, or will never take it because of ``problem``; unknown ids are ignored."""
        for run_id in run_ids:
            if (flight := self._flights.get(run_id)) is not None:
                flight.arrived = (problem is None, problem or "")
            elif (job_id := self._on_the_way.pop(run_id, None)) is not None:
                self._spawn(self._note_delivery(run_id, job_id, problem), f"job {job_id} delivered")

    # The loop

    def _sooner(self, due: datetime) -> None:
        if self._wake_at is None or due < self._wake_at:
            self._changed.set()

    async def _serve(self) -> None:
        while not self._leaving:
            self._changed.clear()
            self._wake_at = None  # whatever is made while we look may be earlier than what we find
            try:
                self._wake_at = await self._dispatch()
            except OperatorMustAct as error:
                log.error("jobs wait for the host", extra={"facts": {"error": str(error)}})
                await self._clock.sleep(_AGAIN_S)
                continue
            except Exception:
                log.exception("jobs could not be looked at", extra={"facts": {"error_id": self._ids()}})
                await self._clock.sleep(_AGAIN_S)
                continue
            await self._rest()

    async def _rest(self) -> None:
        """Sleep until the next job, or until something changes. The clock may be set meanwhile, so it is looked at now and then."""
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            while not changed.done():
                if self._wake_at is None:
                    await changed
                    return
                left = (self._wake_at - self._clock.now()).total_seconds()
                if left <= 0:
                    return
                asleep = asyncio.ensure_future(self._clock.sleep(min(left, self.options.look_at_clock_every.total_seconds())))
                try:
                    await asyncio.wait((changed, asleep), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    asleep.cancel()
                    await asyncio.gather(asleep, return_exceptions=True)
        finally:
            changed.cancel()

    async def _dispatch(self) -> datetime | None:
        """Begin what is due and has room; gives when the next job becomes due."""
        while True:
            now = self._clock.now()
            room = self.options.concurrency - sum(flight.slot for flight in self._flights.values())
            if room <= 0 or self._leaving:
                break
            besides = tuple({str(flight.job.definition.address) for flight in self._flights.values()})
            rows = await self._database.read(partial(tables.due_jobs, now=now, besides=besides, limit=room))
            if not rows:
                break
            for row in rows:
                await self._take(row, now)
        # As of the moment at which nothing more was due: what became due since must not fall between the two questions.
        return await self._database.read(lambda t: tables.next_wake(t, now))

    async def _take(self, row: Row, now: datetime) -> None:
        try:
            job = tables.job_from(row)
            following = next_due(job.definition, now, job.zone, self.book.quiet)
            quiet = job.definition.quiet(self.book.quiet)
        except (msgspec.MsgspecError, PumiceError, ValueError, KeyError, OverflowError):
            log.exception("a stored job cannot be read and is paused", extra={"facts": {"job": row[0]}})
            sql = "UPDATE jobs SET state = 'paused', reason = 'it cannot be read any more', next_at = NULL WHERE id = ?"
            await self._database.write(lambda t: t.execute(sql, (row[0],)))
            return
        due, definition = job.next_at, job.definition
        assert due is not None
        if quiet is not None and quiet.covers(now, job.zone):
            await self._database.write(lambda t: tables.claim(t, job, quiet.after(now, job.zone)))
            self.book.changed(definition.place)
        elif refusal := self._delivery.refusal(definition.place, by=definition.by, group=definition.group):
            log.warning("jobs are parked", extra={"facts": {"place": str(definition.place), "reason": refusal}})
            await self.book.park(definition.place, refusal)
        elif self.options.catch_up == "skip" and due < self._begun_at - timedelta(seconds=1):
            await self._skip(job, due, following, now)
        else:
            run, prepared = self._new_run(job, due)
            if await self._launch(job, run, prepared, lambda transaction: tables.claim(transaction, job, following)):
                self.book.changed(definition.place)

    def _new_run(self, job: Job, due: datetime) -> tuple[JobRun, DueRun | None]:
        """A run, and what is handed over at once; None where a script looks first."""
        looks_first = bool(job.definition.script or job.definition.checks_file)
        run = JobRun(id=self._ids(), job_id=job.id, due_at=due, state="running" if looks_first else "handed")
        return run, None if looks_first else due_run(job, run, self._clock.now())

    async def _launch(self, job: Job, run: JobRun, prepared: DueRun | None, claim: Callable[[Transaction], bool]) -> bool:
        put = None if prepared is None else self._delivery.put(prepared)

        def work(transaction: Transaction) -> bool:
            if not claim(transaction) or not tables.insert_run(transaction, run, self.options.instance):
                return False
            if put is not None:
                put(transaction)
            return True

        slot = not self._delivery.busy(job.definition.address)
        if not await self._database.write(work):
            return False
        flight = self._flights[run.id] = _Flight(run=run, job=job, slot=slot)
        if prepared is not None:
            self._delivery.begin(prepared)
        else:
            self._spawn(self._look_first(flight), f"job {job.id} script")
        return True

    async def _skip(self, job: Job, due: datetime, following: datetime | None, now: datetime) -> None:
        """Leave out what fell due while no host ran; a job that has no other time is told of."""
        run = JobRun(id=self._ids(), job_id=job.id, due_at=due, state="skipped", ended_at=now)
        told = None if following else missed_notice(job, due, self._ids(), now)
        put = None if told is None else self._delivery.put(told)

        def work(transaction: Transaction) -> bool:
            if not tables.claim(transaction, job, following) or not tables.insert_run(transaction, run, self.options.instance):
                return False
            fresh = tables.find_job(transaction, job.id)
            if fresh is not None:
                state = fresh.state if following else "done"
                tables.update_job(transaction, msgspec.structs.replace(fresh, last_run=run, state=state))
            if put is not None:
                put(transaction)
            return True

        if await self._database.write(work):
            self.book.changed(job.definition.place)
            if told is not None:
                self._delivery.begin(told)

    # Scripts

    async def _look_first(self, flight: _Flight) -> None:
        """Run what decides whether the chat is woken at all."""
        result = await self._scripts.look(flight.job)
        if result.problem:
            await self._finish(flight, "failed", result.problem)
        elif not result.output:
            await self._finish(flight, "silent", "")
        else:
            await self._hand_over(flight, result.output)

    async def _hand_over(self, flight: _Flight, output: str) -> None:
        prepared = due_run(flight.job, flight.run, self._clock.now(), output)
        handed = msgspec.structs.replace(flight.run, state="handed")
        put = self._delivery.put(prepared)

        def work(transaction: Transaction) -> None:
            if tables.end_run(transaction, handed, was=("running",)):
                put(transaction)

        await self._until_written(work)
        flight.run = handed
        flight.slot = flight.slot and not self._delivery.busy(flight.job.definition.address)
        self._delivery.begin(prepared)

    # Ends

    async def _finish(self, flight: _Flight, end: RunEnd, error: str) -> None:
        now = self._clock.now()
        answered = end != "silent" and flight.run.state == "handed"
        run = msgspec.structs.replace(
            flight.run, state=end, delivery="handed" if answered else "none", error=error, ended_at=now
        )  # fmt: skip
        notices: list[DueRun] = []

        def work(transaction: Transaction) -> None:
            notices[:] = settle_run(transaction, run, was=("running", "handed"), notice_id=run.id + "n", now=now)
            for told in notices:
                self._delivery.put(told)(transaction)

        await self._until_written(work)
        self._flights.pop(run.id, None)
        if answered:
            if flight.arrived is None:
                self._on_the_way[run.id] = run.job_id
            else:
                await self._note_delivery(run.id, run.job_id, None if flight.arrived[0] else flight.arrived[1])
        for told in notices:
            self._delivery.begin(told)
        self.book.changed(flight.job.definition.place)
        self._changed.set()

    def _cut_or_done(self, transaction: Transaction, run: JobRun, *, now: datetime) -> None:
        job = tables.find_job(transaction, run.job_id)
        self._delivery.drop(run.id)(transaction)
        for word in settle_run(transaction, run, was=("running", "handed"), notice_id=run.id + "n", now=now):
            self._delivery.put(word)(transaction)
        if run.state == "cut" and job is not None:
            self._delivery.put(cut_notice(job, run, run.id + "c", now))(transaction)

    async def _note_delivery(self, run_id: str, job_id: str, problem: str | None) -> None:
        """Write what became of an answer; a chat that will not take any parks its jobs."""
        state = "delivered" if problem is None else "refused"

        def work(transaction: Transaction) -> Job | None:
            transaction.execute("UPDATE job_runs SET delivery = ? WHERE id = ?", (state, run_id))
            job = tables.find_job(transaction, job_id)
            if job is not None and job.last_run is not None and job.last_run.id == run_id:
                last = msgspec.structs.replace(job.last_run, delivery=state)
                tables.update_job(transaction, msgspec.structs.replace(job, last_run=last))
            return job

        job = await self._database.write(work)
        if job is None:
            return
        if problem is not None:
            await self.book.park(job.definition.place, problem)
        self.book.changed(job.definition.place)

    async def _until_written(self, work: Callable[[Transaction], None]) -> None:
        """A full disk must not make us forget an end."""
        while True:
            try:
                await self._database.write(work)
            except OperatorMustAct as error:
                log.error("the end of a job could not be written", extra={"facts": {"error": str(error)}})
                await self._clock.sleep(_AGAIN_S)
            else:
                return

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        async def guarded() -> None:
            try:
                await work
            except Exception:
                log.exception("task failed", extra={"facts": {"task": name, "error_id": self._ids()}})

        task = asyncio.get_running_loop().create_task(guarded(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())
