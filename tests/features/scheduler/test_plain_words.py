"""Times in plain words, as people and models write them."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.contracts.errors import UserMustAct
from features.scheduler.plain_words import EXAMPLES, parse_plain_words
from features.scheduler.schedule import upcoming

ZONE = "Europe/Vienna"
NOW = datetime(2026, 1, 5, 9, 20, tzinfo=UTC)  # a Monday, 10:20 in Vienna


def times(text: str, count: int = 3, *, now: datetime = NOW, zone: str = ZONE) -> tuple[list[str], str]:
    """The first instants on the zone's clock, and the text after the time."""
    spoken = parse_plain_words(text, now=now, zone=zone)
    due = islice(upcoming(spoken.schedule, now, zone), count)
    return [f"{moment.astimezone(ZoneInfo(zone)):%a %Y-%m-%d %H:%M}" for moment in due], spoken.rest


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("in 20 minutes", ["Mon 2026-01-05 10:40"]),
        ("in an hour", ["Mon 2026-01-05 11:20"]),
        ("in half an hour,", ["Mon 2026-01-05 10:50"]),
        ("In 2 days", ["Wed 2026-01-07 10:20"]),
        ("in 90m", ["Mon 2026-01-05 11:50"]),
        ("at 18:30", ["Mon 2026-01-05 18:30"]),
        ("at 9", ["Tue 2026-01-06 09:00"]),
        ("at 6pm", ["Mon 2026-01-05 18:00"]),
        ("at noon tomorrow", ["Tue 2026-01-06 12:00"]),
        ("tomorrow at 9", ["Tue 2026-01-06 09:00"]),
        ("today at 23:59:", ["Mon 2026-01-05 23:59"]),
        ("tonight at 9", ["Mon 2026-01-05 21:00"]),
        ("friday at 8", ["Fri 2026-01-09 08:00"]),
        ("on monday at 10", ["Mon 2026-01-12 10:00"]),
        ("2026-12-24 18:00", ["Thu 2026-12-24 18:00"]),
        ("on 2026-12-24, at 6pm", ["Thu 2026-12-24 18:00"]),
        ("2026-12-24T18:00Z", ["Thu 2026-12-24 19:00"]),
        ("2026-07-01T18:00:00+00:00", ["Wed 2026-07-01 20:00"]),
        ("every 15 minutes", ["Mon 2026-01-05 10:35", "Mon 2026-01-05 10:50", "Mon 2026-01-05 11:05"]),
        ("every hour", ["Mon 2026-01-05 11:20", "Mon 2026-01-05 12:20", "Mon 2026-01-05 13:20"]),
        ("every day at 9", ["Tue 2026-01-06 09:00", "Wed 2026-01-07 09:00", "Thu 2026-01-08 09:00"]),
        ("daily at 9:30", ["Tue 2026-01-06 09:30", "Wed 2026-01-07 09:30", "Thu 2026-01-08 09:30"]),
        ("every weekday at 09:00", ["Tue 2026-01-06 09:00", "Wed 2026-01-07 09:00", "Thu 2026-01-08 09:00"]),
        ("every weekend at 11", ["Sat 2026-01-10 11:00", "Sun 2026-01-11 11:00", "Sat 2026-01-17 11:00"]),
        ("every monday at 8", ["Mon 2026-01-12 08:00", "Mon 2026-01-19 08:00", "Mon 2026-01-26 08:00"]),
        ("every tue, thu and sunday at 7", ["Tue 2026-01-06 07:00", "Thu 2026-01-08 07:00", "Sun 2026-01-11 07:00"]),
        ("mondays at 8", ["Mon 2026-01-12 08:00", "Mon 2026-01-19 08:00", "Mon 2026-01-26 08:00"]),
        ("every month on the 31st at 10", ["Sat 2026-01-31 10:00", "Tue 2026-03-31 10:00", "Sun 2026-05-31 10:00"]),
        ("every week", ["Mon 2026-01-12 10:20", "Mon 2026-01-19 10:20", "Mon 2026-01-26 10:20"]),
        ("cron 0 9 * * 1-5", ["Tue 2026-01-06 09:00", "Wed 2026-01-07 09:00", "Thu 2026-01-08 09:00"]),
        ('cron "0 9 * * 7"', ["Sun 2026-01-11 09:00", "Sun 2026-01-18 09:00", "Sun 2026-01-25 09:00"]),
    ],
)
def test_what_is_understood(written: str, expected: list[str]) -> None:
    """Each form means one thing, on the clock of the chat's zone; what follows is the text."""
    found, rest = times(f"{written} drink some water, at 9 sharp")

    assert found == expected
    assert rest == "drink some water, at 9 sharp"


def test_every_example_that_people_are_shown_is_understood() -> None:
    """Or the help would mislead."""
    for example in EXAMPLES:
        assert parse_plain_words(example, now=NOW, zone=ZONE).rest == "TEXT"


@pytest.mark.parametrize(
    "written",
    [
        "",
        "soon",
        "every now and then look",
        "9 o'clock",
        "in minutes",
        "every",
        "remind me",
        "in twenty-odd minutes",
        "cron 0 9 * *",
        "at nine",
    ],
)
def test_what_is_unclear_is_refused_with_examples(written: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(UserMustAct, match="every weekday at 09:00"):
        parse_plain_words(written, now=NOW, zone=ZONE)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("at 25:00 x", "no time 25:00"),
        ("at 9:75 x", "no time 9:75"),
        ("at 13pm x", "no 13 pm"),
        ("2026-02-31 10:00 x", "no day 2026-02-31"),
        ("every month on the 32nd at 9 x", "day of month"),
        ("cron 0 9 31 2 * x", "never comes"),
        ("cron 61 9 * * * x", "no minute"),
        ("in 0 minutes x", "no time to wait"),
        ("in 999999 weeks x", "too long"),
        ("every 999999 weeks x", "too long"),
        ("9999-12-31 23:59 x", "too far ahead"),
    ],
)
def test_what_does_not_exist_is_refused(written: str, said: str) -> None:
    """By its name."""
    with pytest.raises(UserMustAct, match=said):
        parse_plain_words(written, now=NOW, zone=ZONE)


@pytest.mark.parametrize("written", ["2026-01-05 10:20 x", "2025-12-24 18:00 x", "today at 9 x", "2026-01-05T09:19Z x", "at 10:20 today x"])
def test_what_has_passed_is_refused_with_the_present_time(written: str) -> None:
    """So that a model can correct itself."""
    with pytest.raises(UserMustAct, match=r"has passed; it is Monday 05 January 2026, 10:20 \(Europe/Vienna\) now"):
        parse_plain_words(written, now=NOW, zone=ZONE)


def test_a_time_on_the_clock_moves_with_the_zone() -> None:
    """A date with an offset does not."""
    wall = parse_plain_words("tomorrow at 9 x", now=NOW, zone=ZONE).schedule
    fixed = parse_plain_words("2026-01-06T09:00+01:00 x", now=NOW, zone=ZONE).schedule

    assert wall.next_after(NOW, "Asia/Tokyo") == datetime(2026, 1, 6, 0, 0, tzinfo=UTC)
    assert fixed.next_after(NOW, "Asia/Tokyo") == datetime(2026, 1, 6, 8, 0, tzinfo=UTC)


def test_a_time_that_the_clock_skips_comes_by_the_old_clock() -> None:
    """And one that comes twice comes the first time."""
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)

    assert times("tomorrow at 2:30 x", now=spring)[0] == ["Sun 2026-03-29 03:30"]
    assert parse_plain_words("tomorrow at 2:30 x", now=autumn, zone=ZONE).schedule.next_after(autumn, ZONE) == datetime(
        2026, 10, 25, 0, 30, tzinfo=UTC
    )


@given(text=st.text(max_size=60) | st.from_regex(r"(in|at|every|on|cron|tomorrow) [a-z0-9 :.,/-]{0,30}", fullmatch=True))
@settings(deadline=None, max_examples=200)
def test_no_text_breaks_the_grammar(text: str) -> None:
    """It is understood, with its first fire in the future, or refused in words."""
    try:
        spoken = parse_plain_words(text, now=NOW, zone=ZONE)
    except UserMustAct:
        return
    due = spoken.schedule.next_after(NOW, ZONE)
    assert due is not None
    assert due > NOW


@given(minutes=st.integers(1, 100_000), moment=st.integers(0, 10**8))
@settings(deadline=None, max_examples=100)
def test_an_interval_keeps_its_rhythm_whenever_it_is_asked(minutes: int, moment: int) -> None:
    """The anchor is fixed, so a restart does not move it."""
    schedule = parse_plain_words(f"every {minutes} minutes x", now=NOW, zone="UTC").schedule
    due = schedule.next_after(NOW + timedelta(seconds=moment), "UTC")

    assert due is not None
    if minutes not in (24 * 60, 7 * 24 * 60):
        assert (due - NOW) % timedelta(minutes=minutes) == timedelta(0)
    assert timedelta(0) < due - (NOW + timedelta(seconds=moment)) <= max(timedelta(minutes=minutes), timedelta(0))
