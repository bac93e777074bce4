"""Hello, help, stop and status: the commands that act at once."""

from datetime import UTC, date, datetime

from bot.chat_commands import chat_commands
from bot.chat_commands.testing import NotedStatus, NotedStop, NotedUsage
from features.contracts.chat import ChannelHealth
from tests.bot.chat_commands.conftest import GUEST, Chat


def test_every_documented_command_is_there() -> None:
    """The list is a promise; what acts outside the queue is one too."""
    commands = chat_commands()
    names = "start help new stop status model thinking compact tree fork label undo retry sessions resume delete name export"
    names += " timezone busy verbose schedule jobs job memory skills usage settings extensions reload approvals answer pair"

    assert [command.name for command in commands] == names.split()
    assert {command.name for command in commands if command.control} == {"start", "help", "stop", "status", "answer", "pair"}
    assert {command.name for command in commands if command.owner_only} == {"reload", "pair"}
    assert {command.name for command in commands if command.hidden} == {"answer"}


async def test_start_says_hello_and_is_honest_about_the_model(chat: Chat) -> None:
    """The built-in model is no real one."""
    assert "only pretend to think" in await chat.says("/start")
    await chat.says("/model anthropic/claude-x")

    said = await chat.says("/start")
    assert "`anthropic/claude-x`" in said
    assert "pretend" not in said


async def test_help_lists_and_explains(chat: Chat) -> None:
    """Guests see no owner's commands."""
    assert "`/pair [CODE]`" in await chat.says("/help")
    assert "/pair" not in await chat.says("/help", by=GUEST)
    assert (await chat.says("/help busy")).startswith("`/busy [steer|follow_up|interrupt|collect]`")
    assert "Did you mean `/busy`?" in await chat.says("/help bsuy")


async def test_stop_says_what_became_of_the_queue(chat: Chat) -> None:
    """Queued messages are kept, and that is said."""
    assert await chat.says("/stop") == "Nothing was running."
    chat.conversation.stopping = NotedStop(was_running=True, kept=1)
    assert await chat.says("/stop") == "Stopped. 1 queued message is kept; I go on with it next."
    chat.conversation.stopping = NotedStop(was_running=True, kept=2)
    assert await chat.says("/stop") == "Stopped. 2 queued messages are kept; I go on with them next."
    assert chat.conversation.deeds == [("stop", "")] * 3


async def test_status_tells_the_truth(chat: Chat) -> None:
    """The model really used, not the one that was set; a deaf channel too."""
    chat.conversation.now = NotedStatus(
        running=True,
        queued=2,
        running_tools=("bash",),
        model="anthropic/claude-x",
        context_tokens=12_500,
        context_window=200_000,
        session_id="s-1",
        session_name="*Rome*",
    )
    chat.usage.rows = [NotedUsage(day=date(2026, 1, 5), model="x", cost=0.125)]
    chat.health["telegram"] = ChannelHealth(
        state="degraded", detail="another host polls this bot", last_event_at=datetime(2026, 1, 5, tzinfo=UTC)
    )
    said = await chat.says("/status")

    for part in (
        "running `bash`; 2 in the queue",
        "`anthropic/claude-x`, thinking off",
        "12,500 of 200,000 tokens (6 %)",
        "\\*Rome\\*, `s-1`",
        "$0.12",
        "Europe/Vienna, it is Mon 10:00",
        "**telegram:** degraded: another host polls this bot",
    ):
        assert part in said, part
    assert chat.buttons == {"Stop": "/stop"}
    assert chat.usage.asked == [("telegram:1", date(2026, 1, 5))]


async def test_status_of_a_chat_that_never_spoke(chat: Chat) -> None:
    """No session is made for the asking."""
    said = await chat.says("/status")

    assert "`offline/assistant`" in said
    assert "**Session:** none yet" in said
    assert chat.conversation.deeds == []
    assert chat.buttons == {}
