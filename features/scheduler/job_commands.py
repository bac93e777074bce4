"""``/schedule``, ``/jobs`` and ``/job``."""

from collections.abc import Awaitable, Callable
from typing import Literal
from zoneinfo import ZoneInfo

from features.contracts.chat import Address, Button, OutboundMessage
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct
from features.contracts.jobs import JobDelivery, JobOrigin
from features.scheduler.heartbeat import HEARTBEAT
from features.scheduler.job import Job, JobDefinition
from features.scheduler.job_book import JobBook
from features.scheduler.plain_words import EXAMPLES, parse_plain_words
from features.scheduler.wording import job_lines, one_line, run_words, schedule_words

__all__ = ["JobAction", "JobCommands", "buttons_of"]

JobAction = Literal["run", "pause", "resume", "remove"]

_ACTIONS: tuple[JobAction, ...] = ("run", "pause", "resume", "remove")
_MOST_LISTED = 60
_MOST_BUTTONS = 8


class JobCommands:
    """What people say about jobs, and what they are told.

    Raises, from every call:
        UserMustAct: with what to say instead.
    """

    def __init__(self, book: JobBook, delivery: JobDelivery, clock: Clock, *, run_now: Callable[[str], Awaitable[None]]) -> None:
        self._book = book
        self._delivery = delivery
        self._clock = clock
        self._run_now = run_now

    async def schedule(self, address: Address, text: str, origin: JobOrigin) -> OutboundMessage:
        """Make a job out of a time and a prompt in plain words."""
        if not text.strip():
            examples = "\n".join(f"- `/schedule {example}`" for example in EXAMPLES)
            return OutboundMessage(text=f"Say when, and what I shall do then:\n{examples}\n\n`/jobs` lists what there is.")
        job = await self.make(address, text, origin)
        return OutboundMessage(text=job_lines(job, self._book.upcoming(job)), buttons=buttons_of(job))

    async def make(self, address: Address, text: str, origin: JobOrigin) -> Job:
        zone = await self._delivery.zone(address.place)
        spoken = parse_plain_words(text, now=self._clock.now(), zone=zone)
        definition = JobDefinition(
            address=address, schedule=spoken.schedule, text=spoken.rest,
            by=origin.by, owner=origin.owner, group=origin.group, depth=origin.depth,
        )  # fmt: skip
        return await self._book.add(definition)

    async def jobs(self, address: Address) -> OutboundMessage:
        """The jobs of a place; those that are done are left out."""
        live = [job for job in await self._book.list(address.place) if job.state != "done"]
        if not live:
            return OutboundMessage(text=f"There are no jobs in this chat. For example: `/schedule {EXAMPLES[6]}`")
        lines = [_line(job) for job in live[:_MOST_LISTED]]
        if len(live) > _MOST_LISTED:
            lines.append(f"- ...and {len(live) - _MOST_LISTED} more")
        shown = [Button(label=f"Job {job.id}", command=f"/job {job.id}") for job in live[:_MOST_BUTTONS]]
        rows = tuple(tuple(shown[at : at + 4]) for at in range(0, len(shown), 4))
        return OutboundMessage(text="\n".join(lines), buttons=rows)

    async def job(self, address: Address, text: str) -> OutboundMessage:
        """Show one job, or do something with it."""
        words = text.split()
        if not words:
            raise UserMustAct("Which one? `/jobs` lists them; then `/job ID`, or `/job ID run`, `pause`, `resume`, `remove`.")
        job = await self._book.get(words[0], address.place)
        if len(words) == 1:
            runs = await self._book.runs(job.id, limit=5)
            earlier = "".join(f"\n- before: {run_words(run, job.zone)}" for run in runs[1:])
            return OutboundMessage(text=job_lines(job, self._book.upcoming(job)) + earlier, buttons=buttons_of(job))
        action = next((known for known in _ACTIONS if known == words[1].lower()), None)
        if action is None:
            raise UserMustAct(f"I cannot {words[1]!r} a job; say `/job {job.id}` and one of {', '.join(_ACTIONS)}.")
        return OutboundMessage(text=await self.act(job.id, action))

    async def count(self, place: Address) -> int:
        """How many jobs of a place are not done."""
        return sum(job.state != "done" for job in await self._book.list(place))

    async def zone_changed(self, place: Address, zone: str) -> None:
        await self._book.zone_changed(place, zone)

    async def act(self, job_id: str, action: JobAction, place: Address | None = None) -> str:
        """Do something with a job; gives what to say about it."""
        job = await self._book.get(job_id, place)
        match action:
            case "run":
                await self._run_now(job.id)
                return f"Job {job.id} runs now."
            case "pause":
                await self._book.pause(job.id)
                return f"Job {job.id} is paused. `/job {job.id} resume` lets it run again."
            case "resume":
                job = await self._book.resume(job.id)
                return f"Job {job.id} is active again.\n\n{job_lines(job, self._book.upcoming(job))}"
            case "remove" if job.definition.key == HEARTBEAT:  # it would come again
                await self._book.pause(job.id)
                return f"The heartbeat of this chat is off. `/job {job.id} resume` switches it on again."
            case "remove":
                await self._book.remove(job.id)
                return f"Job {job.id} is removed: {one_line(job.definition.text or job.definition.script)}"


def buttons_of(job: Job) -> tuple[tuple[Button, ...], ...]:
    """What can be done with a job."""
    toggle = "pause" if job.state == "active" else "resume"
    actions: tuple[str, ...] = ("run", *(() if job.state == "done" else (toggle,)), "remove")
    labels = {"run": "Run now", "pause": "Pause", "resume": "Resume", "remove": "Remove"}
    return (tuple(Button(label=labels[action], command=f"/job {job.id} {action}") for action in actions),)


def _line(job: Job) -> str:
    what = one_line(job.definition.condition or job.definition.text or job.definition.script, 60)
    when = schedule_words(job.definition.schedule, job.zone)
    if job.state != "active":
        return f"- **{job.id}** {what} ({when}), {job.state}"
    due = "at work" if job.next_at is None else f"next {job.next_at.astimezone(ZoneInfo(job.zone)):%a %d %b, %H:%M}"
    return f"- **{job.id}** {what} ({when}), {due}"
