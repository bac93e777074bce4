"""A job: what is to be done, when, and how it stands."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from features.contracts.chat import Address
from features.scheduler.quiet_hours import QuietHours, parse_quiet_hours
from features.scheduler.schedule import Cron, Every, Schedule

__all__ = ["Job", "JobDefinition", "JobRun", "JobState", "Kind", "RunState", "next_due", "upcoming_runs"]

JobState = Literal["active", "paused", "parked", "done"]
"""``paused`` by a person or after failures, ``parked`` because its chat is gone, ``done`` when it will not run again."""

RunState = Literal["running", "handed", "done", "silent", "failed", "stopped", "cut", "skipped"]
"""``running``: its script is at work. ``handed``: the chat has it. All others are ends."""

DeliveryState = Literal["none", "handed", "delivered", "refused"]

Kind = Literal["prompt", "text", "watcher", "condition"]


class JobDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants done. Exactly this is stored; what changes by itself stands in ``Job``.

    ``text`` is the prompt, the text to deliver (``mode`` text), what to do with a watcher's output, or what to do when ``condition``
    holds. ``script`` runs first; without output of it the agent is not asked. ``quiet_hours`` None follows the host's, "" has none.
    ``key`` is what another feature calls it. ``depth`` counts how many jobs made each other until this one.
    """

    address: Address
    schedule: Schedule
    text: str = ""
    mode: Literal["prompt", "text"] = "prompt"
    script: str = ""
    condition: str = ""
    once: bool = True
    isolated: bool = False
    quiet_hours: str | None = None
    ends_at: datetime | None = None
    key: str | None = None
    by: str = ""
    owner: bool = False
    group: bool = False
    depth: int = 0
    checks_file: str = ""

    @property
    def place(self) -> Address:
        return self.address.place

    @property
    def kind(self) -> Kind:
        if self.condition:
            return "condition"
        if self.script:
            return "watcher"
        return self.mode

    @property
    def repeats(self) -> bool:
        return isinstance(self.schedule, Every | Cron)

    def quiet(self, host: QuietHours | None) -> QuietHours | None:
        """The quiet hours that hold for it. The host's are for what repeats: a time that somebody named is meant."""
        if self.quiet_hours is not None:
            return parse_quiet_hours(self.quiet_hours)
        return host if self.repeats else None


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what became of the work, and, apart from that, what became of the answer."""

    id: str
    job_id: str
    due_at: datetime
    state: RunState
    delivery: DeliveryState = "none"
    error: str = ""
    ended_at: datetime | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job and how it stands. ``zone`` is the one that its times are read in, its chat's."""

    id: str
    definition: JobDefinition
    zone: str
    state: JobState
    made_at: datetime
    reason: str = ""
    next_at: datetime | None = None
    failures: int = 0
    last_run: JobRun | None = None


def next_due(definition: JobDefinition, moment: datetime, zone: str, quiet: QuietHours | None) -> datetime | None:
    """The next time after a moment that it is to run, None where there is none any more.

    Args:
        quiet: the host's quiet hours.
    """
    due = definition.schedule.next_after(moment, zone)
    hours = definition.quiet(quiet)
    if due is not None and hours is not None:
        due = hours.after(due, zone)
    if due is None or (definition.ends_at is not None and due > definition.ends_at):
        return None
    return due - timedelta(microseconds=due.microsecond % 1000)  # what the database keeps


def upcoming_runs(definition: JobDefinition, moment: datetime, zone: str, quiet: QuietHours | None) -> Iterator[datetime]:
    """Its runs after a moment, in UTC."""
    while (due := next_due(definition, moment, zone, quiet)) is not None:
        yield due
        if not definition.repeats:
            return
        moment = max(due, moment + timedelta(milliseconds=1))
