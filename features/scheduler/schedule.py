"""When something is due: once, every so often, or by the calendar.

Every kind has ``next_after(moment, zone)``, the first instant in UTC after a moment, None where there is none any more, and
``shortest_gap_s``, the least time between two fires.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import msgspec

from features.scheduler.crontab import Crontab, parse_crontab

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]

__all__ = ["Cron", "Every", "Once", "Schedule", "Wall", "upcoming"]

_WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_TICK = timedelta(microseconds=1)


class Once(msgspec.Struct, frozen=True, kw_only=True, tag="once"):
    """At one instant, in UTC."""

    at: datetime

    def next_after(self, moment: datetime, zone: str) -> datetime | None:
        return self.at if self.at > moment else None

    def shortest_gap_s(self) -> float:
        return float("inf")


class Wall(msgspec.Struct, frozen=True, kw_only=True, tag="wall"):
    """Once, when the clock of the chat's zone shows ``local``; it moves with the zone.

    A time that the clock skips comes by the old clock, one that comes twice comes the first time.
    """

    local: datetime

    def next_after(self, moment: datetime, zone: str) -> datetime | None:
        at = self.local.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)
        return at if at > moment else None

    def shortest_gap_s(self) -> float:
        return float("inf")


class Every(msgspec.Struct, frozen=True, kw_only=True, tag="every"):
    """Every so many seconds since ``start``, a fixed point, so that neither a restart nor a late run moves the rhythm."""

    seconds: int
    start: datetime

    def next_after(self, moment: datetime, zone: str) -> datetime | None:
        step = timedelta(seconds=self.seconds)
        if moment < self.start:
            return self.start
        return self.start + step * ((moment - self.start) // step + 1)

    def shortest_gap_s(self) -> float:
        return self.seconds


class Cron(msgspec.Struct, frozen=True, kw_only=True, tag="cron"):
    """A crontab expression, read on the clock of the chat's zone.

    A time that a change of the clock leaves out comes at the instant that the old clock would have shown it (02:30 is then 03:30). A time
    that comes twice counts the first time only, unless the hours are ``*`` or a step, which go on evenly.
    """

    expression: str

    def next_after(self, moment: datetime, zone: str) -> datetime | None:
        triggers, every_hour = _triggers(self.expression, zone)
        due = [found for trigger in triggers if (found := _next(trigger, moment, every_hour=every_hour)) is not None]
        return min(due, default=None)

    def shortest_gap_s(self) -> float:
        return 60 * parse_crontab(self.expression).shortest_gap_minutes()


Schedule = Once | Wall | Every | Cron


def upcoming(schedule: Schedule, moment: datetime, zone: str) -> Iterator[datetime]:
    """The instants after ``moment`` at which it is due, in UTC."""
    while (due := schedule.next_after(moment, zone)) is not None:
        yield due
        moment = due


def _next(trigger: "CronTrigger", moment: datetime, *, every_hour: bool) -> datetime | None:
    while True:
        found = trigger.get_next_fire_time(None, moment + _TICK)
        if found is None:
            return None
        moment = found.astimezone(UTC)
        if every_hour or not _is_second_time(found):
            return moment


def _is_second_time(local: datetime) -> bool:
    """Whether the clock was put back and shows this time again."""
    return local.fold == 1 and local.utcoffset() != local.replace(fold=0).utcoffset()


@lru_cache(maxsize=4096)
def _triggers(expression: str, zone: str) -> "tuple[tuple[CronTrigger, ...], bool]":
    from apscheduler.triggers.cron import CronTrigger

    crontab = parse_crontab(expression)
    days, weekdays = _listed(crontab.days, 31), _weekdays(crontab)
    choices = [(days, "*"), ("*", weekdays)] if crontab.either_day else [(days, weekdays)]
    return tuple(
        CronTrigger(
            minute=_listed(crontab.minutes, 60), hour=_listed(crontab.hours, 24), month=_listed(crontab.months, 12),
            day=day, day_of_week=weekday, second=0, timezone=ZoneInfo(zone),
        )
        for day, weekday in choices
    ), crontab.every_hour  # fmt: skip


def _listed(numbers: tuple[int, ...], whole: int) -> str:
    return "*" if len(numbers) == whole else ",".join(map(str, numbers))


def _weekdays(crontab: Crontab) -> str:
    return "*" if len(crontab.weekdays) == 7 else ",".join(_WEEKDAY_NAMES[number] for number in crontab.weekdays)
