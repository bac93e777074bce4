"""When something is due: once, every so often, or by the calendar.

Every kind has ``next_after(moment, zone)``, the first instant in UTC after a moment, None where there is none any more, and
``shortest_gap_s``, the least time between two fires.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from features.scheduler.crontab import Crontab, parse_crontab

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]

__all__ = ["Cron", "Every", "Once", "Schedule", "Wall", "upcoming"]

_WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_TICK = timedelta(microseconds=1)
_SHIFT = timedelta(hours=3)  # more than any clock is moved at once


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
        due = [found for triggers in _triggers(self.expression, zone) if (found := _next(triggers, moment, ZoneInfo(zone))) is not None]
        return min(due, default=None)

    def shortest_gap_s(self) -> float:
        return 60 * parse_crontab(self.expression).shortest_gap_minutes()


Schedule = Once | Wall | Every | Cron


def upcoming(schedule: Schedule, moment: datetime, zone: str) -> Iterator[datetime]:
    """The instants after ``moment`` at which it is due, in UTC."""
    while (due := schedule.next_after(moment, zone)) is not None:
        yield due
        moment = due


def _next(triggers: "_Triggers", moment: datetime, zone: ZoneInfo) -> datetime | None:
    return _next_in_rhythm(triggers.real, moment) if triggers.every_hour else _next_by_the_wall(triggers.wall, moment, zone)


def _next_in_rhythm(trigger: "CronTrigger", moment: datetime) -> datetime | None:
    found = trigger.get_next_fire_time(None, moment + _TICK)
    return None if found is None else found.astimezone(UTC)


def _next_by_the_wall(trigger: "CronTrigger", moment: datetime, zone: ZoneInfo) -> datetime | None:
    """The trigger counts on a clock that nobody changes; what it finds is then read off the zone's clock.

    APScheduler's own arithmetic in a zone leaves out the midnight after the clock was put forward.
    """
    wall = moment.astimezone(zone).replace(tzinfo=UTC, fold=0)
    if (moment - _SHIFT).astimezone(zone).utcoffset() != moment.astimezone(zone).utcoffset():
        wall -= _SHIFT  # what stood in the gap may still be to come
    best: datetime | None = None
    while (found := trigger.get_next_fire_time(None, wall + _TICK)) is not None:
        local = found.replace(tzinfo=zone, fold=0)
        due = local.astimezone(UTC)
        if due > moment and (best is None or due < best):
            best = due
        if best is not None and (due > best or not _near_a_gap(local)):
            return best
        wall = found
    return best


def _near_a_gap(local: datetime) -> bool:
    """Whether a later time of this clock may be an earlier instant."""
    return local.utcoffset() != (local + _SHIFT).utcoffset() or local.astimezone(UTC).astimezone(local.tzinfo).replace(fold=0) != local


class _Triggers(NamedTuple):
    """``real`` counts on the zone's clock, ``wall`` on one that is never changed; ``every_hour`` says which of them tells."""

    real: "CronTrigger"
    wall: "CronTrigger"
    every_hour: bool


@lru_cache(maxsize=4096)
def _triggers(expression: str, zone: str) -> tuple[_Triggers, ...]:
    crontab = parse_crontab(expression)
    days, weekdays = _listed(crontab.days, 31), _weekdays(crontab)
    choices = [(days, "*"), ("*", weekdays)] if crontab.either_day else [(days, weekdays)]
    return tuple(
        _Triggers(_trigger(crontab, day, weekday, ZoneInfo(zone)), _trigger(crontab, day, weekday, UTC), crontab.every_hour)
        for day, weekday in choices
    )


def _trigger(crontab: Crontab, day: str, weekday: str, zone: tzinfo) -> "CronTrigger":
    from apscheduler.triggers.cron import CronTrigger

    return CronTrigger(
        minute=_listed(crontab.minutes, 60), hour=_listed(crontab.hours, 24), month=_listed(crontab.months, 12),
        day=day, day_of_week=weekday, second=0, timezone=zone,
    )  # fmt: skip


def _listed(numbers: tuple[int, ...], whole: int) -> str:
    return "*" if len(numbers) == whole else ",".join(map(str, numbers))


def _weekdays(crontab: Crontab) -> str:
    return "*" if len(crontab.weekdays) == 7 else ",".join(_WEEKDAY_NAMES[number] for number in crontab.weekdays)
