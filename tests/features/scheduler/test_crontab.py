"""Crontab expressions against cron's own rules."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, available_timezones

import pytest
from croniter import croniter  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from features.contracts.errors import UserMustAct
from features.scheduler.crontab import parse_crontab
from features.scheduler.schedule import Cron, upcoming

ZONES = sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith(("posix/", "right/", "Etc/")))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """A crontab field: all, numbers, ranges, steps."""
    number = st.integers(low, high)
    span = st.tuples(st.integers(low, high - 1), st.integers(1, 30)).map(lambda it: f"{it[0]}-{min(high, it[0] + it[1])}")
    step = st.integers(1, 12).map(lambda every: f"*/{every}")
    return st.one_of(
        st.just("*"), number.map(str), span, step, st.lists(number, min_size=2, max_size=4).map(lambda few: ",".join(map(str, few)))
    )


EXPRESSIONS = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)).map(" ".join)
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 6 * 365 * 24 * 60).map(lambda minutes: FIRST + timedelta(minutes=minutes))


@given(expression=EXPRESSIONS, moment=MOMENTS)
@settings(deadline=None, max_examples=120)
def test_it_is_due_when_an_independent_cron_says_so(expression: str, moment: datetime) -> None:
    """In UTC, where no clock changes."""
    reference = croniter(expression, moment, ret_type=datetime, implement_cron_bug=True)
    expected = [reference.get_next(datetime).astimezone(UTC) for _ in range(4)]

    assert list(islice(upcoming(Cron(expression=expression), moment, "UTC"), 4)) == expected


def by_the_clock(zone: ZoneInfo, day: datetime, minutes: tuple[int, ...], hours: tuple[int, ...]) -> Iterator[datetime]:
    """The rule, minute by minute: a time that the clock skips comes by the old clock, one that comes twice counts once."""
    for days in range(3):
        for minute in range(24 * 60):
            wall = (day + timedelta(days=days)).replace(hour=minute // 60, minute=minute % 60, tzinfo=zone, fold=0)
            if wall.hour in hours and wall.minute in minutes:
                yield wall.astimezone(UTC)


@given(zone=st.sampled_from(ZONES), days=st.integers(0, 6 * 365), hour=st.integers(0, 23), minute=st.integers(0, 59))
@settings(deadline=None, max_examples=120)
def test_a_time_of_day_comes_once_a_day_in_every_zone(zone: str, days: int, hour: int, minute: int) -> None:
    """Also on the two days a year that have 23 and 25 hours."""
    start = FIRST.replace(tzinfo=ZoneInfo(zone)) + timedelta(days=days)
    moment = start.astimezone(UTC) - timedelta(seconds=1)
    expected = sorted(set(by_the_clock(ZoneInfo(zone), start, (minute,), (hour,))))

    assert list(islice(upcoming(Cron(expression=f"{minute} {hour} * * *"), moment, zone), 3)) == expected


@pytest.mark.parametrize(
    ("expression", "first", "local"),
    [
        ("30 2 * * *", "2026-03-28T12:00+00:00", ["29. 03:30", "30. 02:30"]),
        ("0 0 * * *", "2026-03-28T12:00+00:00", ["29. 00:00", "30. 00:00"]),
        ("0,30 2,3 * * *", "2026-03-28T12:00+00:00", ["29. 03:00", "29. 03:30", "30. 02:00"]),
        ("30 2 * * *", "2026-10-24T12:00+00:00", ["25. 02:30", "26. 02:30"]),
        ("*/30 2 * * *", "2026-10-24T12:00+00:00", ["25. 02:00", "25. 02:30", "26. 02:00"]),
        ("30 * * * *", "2026-10-24T23:45+00:00", ["25. 02:30", "25. 02:30", "25. 03:30"]),
        ("30 */2 * * *", "2026-10-24T23:45+00:00", ["25. 02:30", "25. 02:30", "25. 04:30"]),
    ],
)
def test_what_happens_when_the_clock_changes(expression: str, first: str, local: list[str]) -> None:
    """In the gap the old clock counts; in the overlap the first time, except for a rhythm of hours, which goes on evenly."""
    due = islice(upcoming(Cron(expression=expression), datetime.fromisoformat(first), "Europe/Berlin"), len(local))

    assert [f"{moment.astimezone(ZoneInfo('Europe/Berlin')):%d. %H:%M}" for moment in due] == local


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("0 9 * * 0", "Sun"),
        ("0 9 * * 7", "Sun"),
        ("0 9 * * 1", "Mon"),
        ("0 9 * * SUN", "Sun"),
        ("0 9 * * 5-7", "Fri Sat Sun"),
        ("0 9 * * mon-wed", "Mon Tue Wed"),
    ],
)
def test_weekdays_count_from_sunday(expression: str, names: str) -> None:
    """APScheduler counts from Monday, which would be a day off."""
    due = islice(upcoming(Cron(expression=expression), datetime(2026, 11, 30, tzinfo=UTC), "UTC"), 7)

    assert {f"{moment:%a}" for moment in due} == set(names.split())


def test_a_day_of_month_and_a_weekday_mean_either() -> None:
    """As cron does, and as APScheduler does not."""
    due = islice(upcoming(Cron(expression="0 9 13 * 5"), datetime(2026, 3, 7, tzinfo=UTC), "UTC"), 3)

    assert [f"{moment:%a %d}" for moment in due] == ["Fri 13", "Fri 20", "Fri 27"]
    assert [
        f"{moment:%a %d}" for moment in islice(upcoming(Cron(expression="0 9 13 * 5"), datetime(2026, 4, 11, tzinfo=UTC), "UTC"), 2)
    ] == [
        "Mon 13",
        "Fri 17",
    ]


@pytest.mark.parametrize(
    "expression",
    [
        *("", "* * * *", "* * * * * *", "@daily", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 * *", "* * * 13 *"),
        *("* * * * 8", "5-1 * * * *", "*/0 * * * *", "a * * * *", "* * * * mon#1", "* * L * *", "1, * * * *", "-1 * * * *", "² * * * *"),
        *("0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *", "1-2-3 * * * *"),
    ],
)
def test_what_is_no_expression_or_never_comes_is_refused(expression: str) -> None:
    """With words that say what would be right."""
    with pytest.raises(UserMustAct):
        parse_crontab(expression)


@pytest.mark.parametrize(
    ("expression", "minutes"),
    [("* * * * *", 1), ("*/15 * * * *", 15), ("0 9 * * *", 1440), ("0,50 9 * * *", 50), ("59 23 * * *", 1440), ("0,59 0,23 * * *", 1)],
)
def test_the_shortest_gap_is_known(expression: str, minutes: int) -> None:
    """The least interval that a host allows is compared with it."""
    assert parse_crontab(expression).shortest_gap_minutes() == minutes
