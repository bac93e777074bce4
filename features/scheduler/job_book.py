"""The jobs as people, tools and other features make and change them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from features.contracts.chat import Address
from features.contracts.clock import Clock
from features.contracts.database import Database, Transaction
from features.contracts.errors import PumiceError, UserMustAct
from features.contracts.jobs import JobDelivery
from features.scheduler import tables
from features.scheduler.job import Job, JobDefinition, JobRun, next_due, upcoming_runs
from features.scheduler.jobs_file import jobs_document, write_jobs_file
from features.scheduler.options import SchedulerOptions
from features.scheduler.quiet_hours import parse_quiet_hours
from features.scheduler.schedule import Once
from features.scheduler.wording import delay_words

__all__ = ["JobBook"]

log = logging.getLogger("pumice.scheduler")

_LONGEST_TEXT = 8000
_LONGEST_SCRIPT = 20_000
_DEEPEST = 1
_MOST_LISTED = 20_000
_GRACE = timedelta(minutes=1)


class JobBook:
    """Every change is on the disk when a method returns; the place's jobs.json follows at once.

    Args:
        sooner: told when a job is due from then on, so that whoever sleeps until the next one looks again.
    """

    def __init__(
        self, database: Database, delivery: JobDelivery, clock: Clock, options: SchedulerOptions, *, sooner: Callable[[datetime], None]
    ) -> None:
        self.quiet = parse_quiet_hours(options.quiet_hours)
        self._database = database
        self._delivery = delivery
        self._clock = clock
        self._options = options
        self._sooner = sooner
        self._stale: dict[str, None] = {}
        self._writing: asyncio.Task[None] | None = None

    def now(self) -> datetime:
        return self._clock.now()

    # Reading

    async def get(self, job_id: str, place: Address | None = None) -> Job:
        """A job, of a place if one is named.

        Raises:
            UserMustAct: there is none.
        """
        job = await self._database.read(lambda t: tables.find_job(t, job_id.strip().lstrip("#")))
        if job is None or (place is not None and job.definition.place != place.place):
            raise UserMustAct(f"There is no job {job_id!r} here. /jobs lists them.")
        return job

    async def list(self, place: Address | None = None) -> list[Job]:
        name = None if place is None else str(place.place)
        return await self._database.read(lambda t: tables.jobs_of(t, name, limit=_MOST_LISTED))

    async def runs(self, job_id: str, *, limit: int = 10) -> Sequence[JobRun]:
        return await self._database.read(lambda t: tables.runs_of(t, job_id, limit=limit))

    def upcoming(self, job: Job, count: int = 3) -> Sequence[datetime]:
        """The next runs of a job, in UTC; none while it is not active."""
        if job.state != "active" or job.next_at is None:
            return []
        later = upcoming_runs(job.definition, max(job.next_at, self._clock.now()), job.zone, self.quiet)
        return [job.next_at, *(islice(later, count - 1) if job.definition.repeats else ())]

    # Changing

    async def add(self, definition: JobDefinition) -> Job:
        """Make a job.

        Raises:
            UserMustAct: its time has passed, it would run too often, the place has too many, or a job made by a job would make another.
        """
        zone = await self._delivery.zone(definition.place)
        now = self._clock.now()
        first = self._first(definition, zone, now)
        place, most = str(definition.place), self._options.max_jobs_per_chat

        def work(transaction: Transaction) -> Job:
            if tables.count_live(transaction, place) >= most:
                raise UserMustAct(f"This chat has {most} jobs already, which is the most. Remove one first: /jobs lists them.")
            return tables.insert_job(transaction, definition, zone=zone, next_at=first, now=now)

        job = await self._database.write(work)
        self.changed(definition.place, first)
        return job

    async def update(self, job: Job, definition: JobDefinition) -> Job:
        """Give a job another definition, with what ``add`` asks of one."""
        first = self._first(definition, job.zone, self._clock.now())
        return await self._change(
            job.id,
            lambda fresh: msgspec.structs.replace(fresh, definition=definition, next_at=first, state="active", reason="", failures=0),
        )

    async def pause(self, job_id: str) -> Job:
        return await self._change(job_id, lambda job: msgspec.structs.replace(job, state="paused", reason="", next_at=None))

    async def resume(self, job_id: str) -> Job:
        """Let a job run again, from its next time on.

        Raises:
            UserMustAct: there is no such time.
        """

        def active(job: Job) -> Job:
            due = next_due(job.definition, self._clock.now(), job.zone, self.quiet)
            if due is None:
                raise UserMustAct(f"Job {job.id} has no time left at which it could run. Make a new one with /schedule, or run it now.")
            return msgspec.structs.replace(job, state="active", reason="", failures=0, next_at=due)

        return await self._change(job_id, active)

    async def remove(self, job_id: str) -> None:
        job = await self.get(job_id)
        await self._database.write(lambda t: tables.delete_job(t, job.id))
        self.changed(job.definition.place)

    async def put_keyed(self, definition: JobDefinition) -> Job:
        """Make the one job that another feature calls ``definition.key``, or change it; a paused one stays paused."""
        assert definition.key is not None
        key, place = definition.key, str(definition.place)
        present = await self._database.read(lambda t: tables.find_by_key(t, place, key))
        if present is None:
            return await self.add(definition)
        if present.definition == definition and present.state != "done":
            return present
        first = self._first(definition, present.zone, self._clock.now())

        def changed(job: Job) -> Job:
            paused = job.state in ("paused", "parked")
            return msgspec.structs.replace(
                job, definition=definition, next_at=None if paused else first, state=job.state if paused else "active"
            )

        return await self._change(present.id, changed)

    async def remind(self, address: Address, key: str, *, at: datetime, text: str, prompt: bool = False, owner: bool = False) -> None:
        definition = JobDefinition(
            address=address, schedule=Once(at=at), text=text, mode="prompt" if prompt else "text", key=key, owner=owner, quiet_hours=""
        )  # fmt: skip
        await self.put_keyed(definition)

    async def forget(self, place: Address, key: str) -> bool:
        job = await self._database.read(lambda t: tables.find_by_key(t, str(place.place), key))
        if job is None:
            return False
        await self.remove(job.id)
        return True

    async def keyed(self, key: str) -> Sequence[Job]:
        """The jobs of all places that another feature calls ``key``."""
        return [job for job in await self.list() if job.definition.key == key]

    # What happens to places

    async def zone_changed(self, place: Address, zone: str) -> None:
        """Move the jobs of a place to another zone's clock."""
        now = self._clock.now()

        def moved(job: Job) -> Job:
            due = job.next_at
            if job.state == "active" and (due is None or due > now):  # what is due already is not put off
                due = next_due(job.definition, now, zone, self.quiet) if due is not None else None
            return msgspec.structs.replace(job, zone=zone, next_at=due)

        await self._change_all(place, moved)

    async def park(self, place: Address, reason: str) -> None:
        """Let no job of a place run until somebody is there again."""
        await self._change_all(
            place,
            lambda job: (
                msgspec.structs.replace(job, state="parked", reason=reason, next_at=None) if job.state == "active" else job
            ),
        )  # fmt: skip

    async def unpark(self, place: Address) -> None:
        now = self._clock.now()

        def back(job: Job) -> Job:
            if job.state != "parked":
                return job
            due = next_due(job.definition, now, job.zone, self.quiet)
            return msgspec.structs.replace(job, state="active" if due else "done", reason="", next_at=due)

        await self._change_all(place, back)

    async def parked_places(self) -> set[str]:
        return set(await self._database.read(lambda t: tables.live_places(t, "parked")))

    async def look_over(self) -> None:
        """Put right what changed while no host ran: zones, and files that were not written or that somebody wrote to."""
        for name in await self._database.read(tables.live_places):
            place = Address.parse(name)
            try:
                zone = await self._delivery.zone(place)
                if any(job.zone != zone for job in await self.list(place)):
                    await self.zone_changed(place, zone)
                self.changed(place)  # one writer: two at once would take each other's half-written file away
            except (PumiceError, OSError) as error:
                log.warning("jobs could not be looked over", extra={"facts": {"place": name, "error": str(error)}})

    async def _change_all(self, place: Address, change: Callable[[Job], Job]) -> None:
        name = str(place.place)

        def work(transaction: Transaction) -> list[datetime]:
            soon = []
            for job in tables.jobs_of(transaction, name, limit=_MOST_LISTED):
                changed = change(job)
                if changed != job:
                    tables.update_job(transaction, changed)
                    soon += [changed.next_at] if changed.next_at else []
            return soon

        soon = await self._database.write(work)
        self.changed(place, min(soon, default=None))

    async def _change(self, job_id: str, change: Callable[[Job], Job]) -> Job:
        def work(transaction: Transaction) -> Job:
            job = tables.find_job(transaction, job_id)
            if job is None:
                raise UserMustAct(f"There is no job {job_id!r} here. /jobs lists them.")
            changed = change(job)
            tables.update_job(transaction, changed)
            return changed

        job = await self._database.write(work)
        self.changed(job.definition.place, job.next_at)
        return job

    def _first(self, definition: JobDefinition, zone: str, now: datetime) -> datetime:
        """The first run of a new definition.

        Raises:
            UserMustAct: the definition cannot be taken.
        """
        _check(definition, self._options.min_interval)
        moment = now
        if isinstance(definition.schedule, Once) and now - _GRACE < definition.schedule.at <= now:
            moment = definition.schedule.at - timedelta(milliseconds=1)  # whoever named it took a moment to say so
        due = next_due(definition, moment, zone, self.quiet)
        if due is None:
            raise UserMustAct("That time has passed, or lies beyond the end that was given, so the job would never run.")
        return due

    # jobs.json

    def changed(self, place: Address, due: datetime | None = None) -> None:
        """Something of a place is not as it was: its file is written anew, and the next job may be an earlier one."""
        self._stale[str(place.place)] = None
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_files(), name="jobs.json")
        if due is not None:
            self._sooner(due)

    async def settle(self) -> None:
        """Wait until every file is as the database is."""
        while self._writing is not None:
            await asyncio.wait([self._writing])

    async def close(self) -> None:
        await self.settle()

    async def _write_files(self) -> None:
        try:
            while self._stale:
                name = next(iter(self._stale))
                del self._stale[name]
                try:
                    await self._write_file(name)
                except (PumiceError, OSError) as error:
                    log.warning("jobs.json could not be written", extra={"facts": {"place": name, "error": str(error)}})
        finally:
            self._writing = None

    async def _write_file(self, name: str) -> None:
        jobs = await self._database.read(lambda t: tables.jobs_of(t, name, limit=_MOST_LISTED))
        folder = await self._delivery.own_folder(Address.parse(name))
        if await asyncio.to_thread(lambda: write_jobs_file(folder, jobs_document(name, jobs))):
            log.warning("jobs.json had been changed by somebody else and was written anew", extra={"facts": {"place": name}})


def _check(definition: JobDefinition, min_interval: timedelta) -> None:
    if not (definition.text.strip() or definition.script.strip()):
        raise UserMustAct("What shall I do then? Say it after the time, like `/schedule every weekday at 9 sum up my inbox`.")
    if definition.condition and not definition.text.strip():
        raise UserMustAct("What shall I do when that happens? Give a prompt.")
    if len(definition.text) + len(definition.condition) > _LONGEST_TEXT or len(definition.script) > _LONGEST_SCRIPT:
        raise UserMustAct(f"That is too long: at most {_LONGEST_TEXT} characters of text and {_LONGEST_SCRIPT} of script.")
    if definition.depth > _DEEPEST:
        raise UserMustAct("A job that was made by a job makes no further ones. A person has to ask for this one.")
    gap = definition.schedule.shortest_gap_s()
    if gap < min_interval.total_seconds():
        raise UserMustAct(
            f"That would run every {gap:g} seconds; this host lets {min_interval.total_seconds():g} seconds ({delay_words(min_interval)}) "
            "pass between two runs at least."
        )
    definition.quiet(None)
