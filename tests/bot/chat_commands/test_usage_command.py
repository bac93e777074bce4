"""What a chat used."""

from datetime import UTC, date, datetime

from bot.chat_commands.testing import NotedUsage
from tests.bot.chat_commands.conftest import Chat

TODAY, YESTERDAY = date(2026, 1, 5), date(2026, 1, 4)


async def test_a_day_is_a_table_of_models(chat: Chat) -> None:
    """The dearest first; what the cache served counts as read."""
    chat.usage.rows = [
        NotedUsage(day=TODAY, model="anthropic/claude-x", calls=2, input=900, output=100, cache_read=1_200_000, cost=0.5),
        NotedUsage(day=TODAY, model="openai/gpt", calls=1, input=10, output=5, cost=1.25),
        NotedUsage(day=YESTERDAY, model="openai/gpt", calls=7, input=10, output=5, cost=9.0),
    ]
    said = await chat.says("/usage")

    assert said.splitlines() == [
        "**Today**",
        "",
        "```",
        "model               calls    in  out   cost",
        "openai/gpt              1    10    5  $1.25",
        "anthropic/claude-x      2  1.2M  100  $0.50",
        "all                     3  1.2M  105  $1.75",
        "```",
    ]
    assert chat.buttons == {"Week": "/usage week", "Month": "/usage month"}


async def test_a_week_has_its_days_too(chat: Chat) -> None:
    """Of the chat's own zone, asked for by place."""
    chat.usage.rows = [
        NotedUsage(day=YESTERDAY, model="x/y", calls=7, cost=9.0),
        NotedUsage(day=TODAY, model="x/y", calls=1, input=1500, cost=1.0),
    ]
    said = await chat.says("/usage Week")

    assert "x/y        8  1.5k    0  $10.00" in said
    assert "Sun 04 Jan      7  $9.00\nMon 05 Jan      1  $1.00" in said
    assert chat.usage.asked == [("telegram:1", date(2025, 12, 30))]


async def test_the_day_is_the_chat_s_own(chat: Chat) -> None:
    """At midnight in Tokyo it is still yesterday in Vienna."""
    chat.clock.set(datetime(2026, 1, 5, 15, 30, tzinfo=UTC))
    await chat.says("/timezone Asia/Tokyo")
    await chat.says("/usage day")

    assert chat.usage.asked == [("telegram:1", date(2026, 1, 6))]


async def test_many_models_are_summed_up(chat: Chat) -> None:
    """A table of forty lines reads badly on a phone."""
    chat.usage.rows = [NotedUsage(day=TODAY, model=f"p/m{number:02}", cost=40 - number) for number in range(40)]
    said = await chat.says("/usage")

    assert len(said.splitlines()) == 3 + 1 + 12 + 2 + 1
    assert "others     28" in said


async def test_nothing_used_and_nothing_understood(chat: Chat) -> None:
    """Both are said."""
    assert await chat.says("/usage month") == "**The last 30 days**: nothing was used."
    assert await chat.says("/usage wek") == "`wek` is none of day, week, month. Did you mean `/usage week`?"
