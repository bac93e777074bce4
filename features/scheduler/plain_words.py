"""Times in plain words: "in 20 minutes", "tomorrow at 9", "every weekday at 09:00", "cron 0 9 * * 1-5".

A small grammar on purpose: what it takes means one thing, and everything else is refused with examples.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

from features.contracts.errors import UserMustAct
from features.scheduler.crontab import parse_crontab
from features.scheduler.schedule import Cron, Every, Once, Schedule, Wall

__all__ = ["EXAMPLES", "Spoken", "parse_plain_words"]

EXAMPLES = (
    "in 20 minutes TEXT", "at 18:30 TEXT", "tomorrow at 9 TEXT", "2026-12-24 18:00 TEXT", "every 15 minutes TEXT",
    "every day at 9 TEXT", "every weekday at 09:00 TEXT", "every monday at 8 TEXT", "cron 0 9 * * 1-5 TEXT",
)  # fmt: skip

_DAY_S = 86_400
_FARTHEST_YEARS = 50
_UNITS = {
    "second": 1,
    "sec": 1,
    "s": 1,
    "minute": 60,
    "min": 60,
    "m": 60,
    "hour": 3600,
    "hr": 3600,
    "h": 3600,
    "day": 86400,
    "week": 604800,
}
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "half": 0.5}

_UNIT = r"(?P<unit>seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|weeks?)\b"
_COUNT = r"(?P<count>\d{1,6}|an?|one|two|three|four|five|six|ten|half an)"
_DAY_NAME = r"(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?)(?:day)?s?\b"
_CLOCK = r"(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?(?:\s*(?P<half>am|pm))?\b|(?P<name>noon|midnight)\b)"
_AT = rf"(?:\s*,?\s*(?:at\s+)?{_CLOCK})"

_IN = re.compile(rf"in\s+{_COUNT}\s*{_UNIT}", re.IGNORECASE)
_EVERY_UNIT = re.compile(rf"every\s+(?:{_COUNT}\s*)?{_UNIT}(?!\s+at\b)", re.IGNORECASE)
_EVERY_DAY = re.compile(
    rf"(?:every\s+(?P<days>day|weekday|weekend|(?:{_DAY_NAME})(?:(?:\s*,\s*|\s*,?\s+and\s+)(?:{_DAY_NAME}))*)|(?P<daily>daily)){_AT}",
    re.IGNORECASE,
)
_EVERY_MONTH = re.compile(rf"every\s+month\s+on\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_AT}", re.IGNORECASE)
_CRON = re.compile(r"cron\s+(?P<quoted>[\"'`]?)(?P<fields>\S+(?:\s+[^\s\"'`]+){4})(?P=quoted)(?=\s|$)", re.IGNORECASE)
_DATE = re.compile(
    rf"(?:on\s+)?(?P<date>\d{{4}}-\d{{2}}-\d{{2}})(?:T|,?\s+)(?:at\s+)?{_CLOCK}(?::\d{{2}})?(?P<zone>Z|[+-]\d{{2}}:?\d{{2}})?",
    re.IGNORECASE,
)
_RELATIVE = re.compile(rf"(?P<day>today|tomorrow|tonight|(?:on\s+|next\s+)?(?P<weekday>{_DAY_NAME})){_AT}", re.IGNORECASE)
_AT_CLOCK = re.compile(rf"at\s+{_CLOCK}(?:\s+(?P<day>today|tomorrow)\b)?", re.IGNORECASE)


class Spoken(msgspec.Struct, frozen=True):
    """What the words mean, and what stands after them."""

    schedule: Schedule
    rest: str


def parse_plain_words(text: str, *, now: datetime, zone: str) -> Spoken:
    """Read a time at the beginning of a text.

    Raises:
        UserMustAct: it does not begin with a time, or with one that has passed.
    """
    text = " ".join(text.split())
    for pattern, meaning in _GRAMMAR:
        if match := pattern.match(text):
            return Spoken(meaning(match, now, ZoneInfo(zone)), text[match.end() :].lstrip(" ,:;-").strip())
    examples = "\n".join(f"- `{example}`" for example in EXAMPLES)
    raise UserMustAct(f"I do not understand when that is. What I understand begins like one of these:\n{examples}")


def _in(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    return Once(at=now + timedelta(seconds=_seconds(match)))


def _every_unit(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    seconds = _seconds(match)
    if seconds in (_DAY_S, 7 * _DAY_S):  # a day on the clock, which is not always 24 hours
        local = now.astimezone(zone)
        return Cron(expression=f"{local.minute} {local.hour} * * {'*' if seconds == _DAY_S else local.isoweekday() % 7}")
    return Every(seconds=seconds, start=now + timedelta(seconds=seconds))


def _every_day(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    named = (match["days"] or "day").lower()
    if named in ("day", "weekday", "weekend"):
        days = {"day": "*", "weekday": "1-5", "weekend": "0,6"}[named]
    else:
        days = ",".join(map(str, sorted({_weekday(name) for name in re.findall(_DAY_NAME, named, re.IGNORECASE)})))
    at = _clock(match)
    return Cron(expression=f"{at.minute} {at.hour} * * {days}")


def _every_month(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    at = _clock(match)
    return _cron_of(f"{at.minute} {at.hour} {int(match['day'])} * *")


def _cron(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    return _cron_of(" ".join(match["fields"].split()))


def _cron_of(expression: str) -> Cron:
    parse_crontab(expression)
    return Cron(expression=expression)


def _date(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    try:
        day = date.fromisoformat(match["date"])
    except ValueError:
        raise UserMustAct(f"There is no day {match['date']}.") from None
    if day.year > now.year + _FARTHEST_YEARS:
        raise UserMustAct(f"{day} is too far ahead; at most {_FARTHEST_YEARS} years can be waited for.")
    if offset := match["zone"]:
        at = datetime.fromisoformat(f"{day}T{_clock(match)}{'+00:00' if offset in 'Zz' else offset}").astimezone(UTC)
        _refuse_past(at, now, zone)
        return Once(at=at)
    return _wall(day, _clock(match), now, zone)


def _relative(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    today, at = now.astimezone(zone).date(), _clock(match)
    if match["weekday"] is None:
        named = match["day"].lower()
        if named == "tonight" and at.hour < 12 and match["half"] is None:
            at = at.replace(hour=at.hour + 12)
        return _wall(today + timedelta(days=named == "tomorrow"), at, now, zone)
    if match["weekday"].lower().endswith("days"):
        return Cron(expression=f"{at.minute} {at.hour} * * {_weekday(match['weekday'])}")
    ahead = (_weekday(match["weekday"]) - (today.weekday() + 1)) % 7
    wall = Wall(local=datetime.combine(today + timedelta(days=ahead), at))
    return wall if wall.next_after(now, zone.key) else Wall(local=wall.local + timedelta(days=7))


def _at(match: re.Match[str], now: datetime, zone: ZoneInfo) -> Schedule:
    today, at = now.astimezone(zone).date(), _clock(match)
    if match["day"]:
        return _wall(today + timedelta(days=match["day"].lower() == "tomorrow"), at, now, zone)
    wall = Wall(local=datetime.combine(today, at))
    return wall if wall.next_after(now, zone.key) else Wall(local=wall.local + timedelta(days=1))


def _seconds(match: re.Match[str]) -> int:
    written = (match["count"] or "1").lower().split()[0]
    unit = match["unit"].lower()
    count = _COUNTS.get(written) or int(written)
    seconds = int(count * _UNITS.get(unit, _UNITS.get(unit.rstrip("s"), 0)))
    if seconds < 1:
        raise UserMustAct(f"{match[0]!r} is no time to wait.")
    if seconds > _FARTHEST_YEARS * 366 * _DAY_S:
        raise UserMustAct(f"{match[0]!r} is too long; at most {_FARTHEST_YEARS} years can be waited for.")
    return seconds


def _weekday(name: str) -> int:
    return next(number for number, day in enumerate(_WEEKDAYS) if day.startswith(name[:3].lower()))


def _clock(match: re.Match[str]) -> time:
    if name := match["name"]:
        return time(12 if name.lower() == "noon" else 0)
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), (match["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        raise UserMustAct(f"There is no {hour} {half}.")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        raise UserMustAct(f"There is no time {hour}:{minute:02}. A day goes from 0:00 to 23:59.")
    return time(hour, minute)


def _wall(day: date, at: time, now: datetime, zone: ZoneInfo) -> Wall:
    wall = Wall(local=datetime.combine(day, at))
    if wall.next_after(now, zone.key) is None:
        _refuse_past(wall.local.replace(tzinfo=zone), now, zone)
    return wall


def _refuse_past(at: datetime, now: datetime, zone: ZoneInfo) -> None:
    if at.astimezone(UTC) <= now:
        local = now.astimezone(zone)
        raise UserMustAct(f"{at.astimezone(zone):%A %d %B %Y, %H:%M} has passed; it is {local:%A %d %B %Y, %H:%M} ({zone.key}) now.")


_GRAMMAR: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime, ZoneInfo], Schedule]], ...] = (
    (_IN, _in),
    (_EVERY_DAY, _every_day),
    (_EVERY_MONTH, _every_month),
    (_EVERY_UNIT, _every_unit),
    (_CRON, _cron),
    (_DATE, _date),
    (_RELATIVE, _relative),
    (_AT_CLOCK, _at),
)
