"""Five crontab fields, as cron itself reads them.

APScheduler counts weekdays from Monday and joins day of month and weekday with "and". Cron counts from Sunday, where 7 is Sunday too, and
takes a day that either of the two names, if both name some. So the fields are read here, into the numbers they mean.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

import msgspec

from features.contracts.errors import UserMustAct

__all__ = ["Crontab", "parse_crontab"]

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PART = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?")
_EXAMPLE = "Write minute, hour, day of month, month and weekday, like 0 9 * * 1-5 (at 9 on weekdays)."


class Crontab(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that each field means, rising; weekdays from Sunday, which is 0.

    ``either_day`` says that a day needs to be named by one of the two day fields only, because both name some. ``every_hour`` says that
    the hours are all of them or every so many, so that clock changes do not matter: such a rhythm goes on through them.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either_day: bool
    every_hour: bool

    def shortest_gap_minutes(self) -> int:
        """The least time between two fires that can follow each other, changes of the clock left out."""
        times = sorted(hour * 60 + minute for hour in self.hours for minute in self.minutes)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        gaps.append(times[0] + 24 * 60 - times[-1])
        return min(gaps)


@lru_cache(maxsize=1024)
def parse_crontab(expression: str) -> Crontab:
    """Read an expression.

    Raises:
        UserMustAct: it is none, or it names no day that there ever is.
    """
    fields = expression.split()
    if len(fields) != 5:
        raise UserMustAct(f"A cron expression has five fields, and {expression!r} has {len(fields)}. {_EXAMPLE}")
    minute, hour, day, month, weekday = fields
    crontab = Crontab(
        minutes=_numbers("minute", minute, 0, 59),
        hours=_numbers("hour", hour, 0, 23),
        days=_numbers("day of month", day, 1, 31),
        months=_numbers("month", month, 1, 12, _MONTHS),
        weekdays=tuple(sorted({number % 7 for number in _numbers("weekday", weekday, 0, 7, _DAYS)})),
        either_day=not day.startswith("*") and not weekday.startswith("*"),
        every_hour=hour.startswith("*"),
    )
    if not crontab.either_day and crontab.days[0] > max(_LONGEST_MONTH[number - 1] for number in crontab.months):
        raise UserMustAct(f"{expression!r} never comes: none of its months has a day {crontab.days[0]}.")
    return crontab


def _numbers(field: str, written: str, low: int, high: int, names: Mapping[str, int] | None = None) -> tuple[int, ...]:
    found: set[int] = set()
    for part in written.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise UserMustAct(f"The {field} {written!r} cannot be read. {_EXAMPLE}")
        step = int(match["step"] or 1)
        if match["all"]:
            first, last = low, high if high != 7 else 6
        else:
            first = _number(field, match["first"], low, high, names)
            last = _number(field, match["last"], low, high, names) if match["last"] else (high if match["step"] else first)
        if step == 0 or first > last:
            raise UserMustAct(f"The {field} {written!r} names nothing: a range rises, and a step is at least 1. {_EXAMPLE}")
        found.update(range(first, last + 1, step))
    return tuple(sorted(found))


def _number(field: str, written: str, low: int, high: int, names: Mapping[str, int] | None) -> int:
    number = names.get(written[:3]) if names is not None and written.isalpha() and len(written) >= 3 else None
    if number is None and written.isdecimal() and written.isascii():
        number = int(written)
    if number is None or not low <= number <= high:
        raise UserMustAct(f"{written!r} is no {field}; it goes from {low} to {high}. {_EXAMPLE}")
    return number
