"""The assistant that needs no key: what it understands, and that it works by tools."""

from datetime import UTC, datetime
from typing import Any

import pytest

from features.contracts.messages import AssistantMessage, Message, TextBlock, ToolCall, ToolResultMessage
from features.contracts.models import ToolSpec
from features.models import ModelRegistry
from tests.features.models.rig import Outcome, Rig, call, user

NAMES = ("bash", "read", "write", "edit", "send", "memory", "schedule", "calendar")
TOOLS = [ToolSpec(name=name, description=name, parameters={"type": "object"}) for name in NAMES]


@pytest.fixture
def offline(rig: Rig) -> ModelRegistry:
    rig.clock.set(datetime(2026, 1, 5, 23, 30, tzinfo=UTC))
    return rig.registry()


async def ask(registry: ModelRegistry, text: str, *earlier: Message, tools: list[ToolSpec] = TOOLS) -> Outcome:
    return await call(registry, "offline/assistant", [*earlier, user(text)], tools=tools, time_zone="Europe/Vienna")


async def go_on(registry: ModelRegistry, text: str, *results: tuple[str, bool]) -> Outcome:
    """A round: the request, then a result for each call that it makes."""
    messages: list[Message] = [user(text)]
    outcome = await call(registry, "offline/assistant", messages, tools=TOOLS)
    for content, is_error in results:
        (block,) = outcome.done.content
        assert isinstance(block, ToolCall)
        messages += [outcome.done, _result(outcome.done, content, is_error=is_error)]
        outcome = await call(registry, "offline/assistant", messages, tools=TOOLS)
    return outcome


def _result(message: AssistantMessage, text: str, *, is_error: bool) -> ToolResultMessage:
    (block,) = message.content
    assert isinstance(block, ToolCall)
    return ToolResultMessage(tool_call_id=block.id, tool_name=block.name, content=[TextBlock(text=text)], is_error=is_error, timestamp=0)


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("run: ls -l", "bash", {"command": "ls -l"}),
        ("Run: echo 'a: b'", "bash", {"command": "echo 'a: b'"}),
        ("read notes.md", "read", {"path": "notes.md"}),
        ("read `my file.txt`", "read", {"path": "my file.txt"}),
        ("write a.txt: hello there", "write", {"path": "a.txt", "content": "hello there\n"}),
        ("write a.txt:\nline 1\nline 2\n", "write", {"path": "a.txt", "content": "line 1\nline 2\n"}),
        ("send me a.txt", "send", {"path": "a.txt"}),
        ("remember that I like tea", "memory", {"action": "add", "text": "I like tea"}),
        ("Remember  two\n words", "memory", {"action": "add", "text": "two words"}),
        ("what do you remember?", "memory", {"action": "read"}),
        (
            "remind me in 5 minutes to stand up",
            "schedule",
            {"action": "create", "when": "in 5 minutes", "prompt": "Remind me now: stand up"},
        ),
        ("remind me in 1 hour to eat", "schedule", {"action": "create", "when": "in 1 hour", "prompt": "Remind me now: eat"}),
        (
            "Remind me every day at 8:30 to write",
            "schedule",
            {"action": "create", "when": "every day at 08:30", "prompt": "Remind me now: write"},
        ),
        ("what is on today", "calendar", {"action": "list", "start": "2026-01-06T00:00:00+01:00", "end": "2026-01-07T00:00:00+01:00"}),
        (
            "add Lunch with Ann tomorrow at 12:15",
            "calendar",
            {"action": "create", "title": "Lunch with Ann", "start": "2026-01-07T12:15:00+01:00", "end": "2026-01-07T13:15:00+01:00"},
        ),
    ],
)
async def test_a_request_becomes_a_tool_call(offline: ModelRegistry, text: str, tool: str, arguments: dict[str, Any]) -> None:
    """The same calls that a real model makes, so the whole host is seen at work. Days are those of the chat's zone."""
    outcome = await ask(offline, text)

    (block,) = outcome.done.content
    assert isinstance(block, ToolCall)
    assert (block.name, block.arguments) == (tool, arguments)
    assert outcome.done.stop_reason == "toolUse"
    assert outcome.is_well_formed()


@pytest.mark.parametrize("text", ["hello", "Hi!", "hello there", "good morning"])
async def test_a_greeting_is_answered_honestly(offline: ModelRegistry, text: str) -> None:
    """It never pretends to be a language model."""
    outcome = await ask(offline, text)

    assert outcome.text.startswith("Hello!")
    assert "no language model" in outcome.text


@pytest.mark.parametrize("text", ["what can you do", "What can you do?", "help"])
async def test_it_says_what_it_understands(offline: ModelRegistry, text: str) -> None:
    """Every form that it knows is in the list."""
    outcome = await ask(offline, text)

    for form in (
        "run: COMMAND",
        "read FILE",
        "write FILE: TEXT",
        "send me FILE",
        "remember TEXT",
        "remind me",
        "what is on today",
        "sum up",
    ):
        assert form in outcome.text


@pytest.mark.parametrize("text", ["tell me a joke", "", "run:", "read", "hello, who are you and what is the weather?"])
async def test_to_anything_else_it_says_what_it_is(offline: ModelRegistry, text: str) -> None:
    """And what would be understood."""
    outcome = await ask(offline, text)

    assert "offline assistant" in outcome.text
    assert "read FILE" in outcome.text


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("run: ls", "no tool that runs commands"),
        ("remind me in 5 minutes to eat", "no scheduler here"),
        ("what is on today", "no calendar on this host"),
        ("send me a.txt", "no way to send files"),
        ("remember x", "no memory on this host"),
    ],
)
async def test_what_the_host_lacks_is_said(offline: ModelRegistry, text: str, lacking: str) -> None:
    """It must not promise a reminder that never comes."""
    outcome = await ask(offline, text, tools=[])

    assert lacking in outcome.text
    assert outcome.done.stop_reason == "stop"


async def test_a_result_is_told(offline: ModelRegistry) -> None:
    """In a fence that its own text cannot close."""
    outcome = await go_on(offline, "run: cat x", ("```\ncode\n```", False))

    assert outcome.text == "I ran `cat x`.\n\n````\n```\ncode\n```\n````"


async def test_a_failed_call_is_told_as_failed(offline: ModelRegistry) -> None:
    """With the tool's own words."""
    outcome = await go_on(offline, "read nope.txt", ("no such file", True))

    assert outcome.text.startswith("That did not work.")
    assert "no such file" in outcome.text


async def test_a_long_result_is_cut(offline: ModelRegistry) -> None:
    """It is an answer in a chat, not a download."""
    outcome = await go_on(offline, "read big.txt", ("x" * 10_000, False))

    assert len(outcome.text) < 3_200
    assert "7000 characters more" in outcome.text


async def test_what_was_noted_is_said(offline: ModelRegistry) -> None:
    """And a memory that is full says so in its own words."""
    assert (await go_on(offline, "remember that I like tea", ("Noted.", False))).text == "Noted: I like tea"
    assert "at most 16384" in (await go_on(offline, "remember x", ("at most 16384", True))).text


@pytest.mark.parametrize("text", ["remind me every day at 25:00 to sleep", "add X today at 10:99"])
async def test_a_time_that_does_not_exist_is_refused(offline: ModelRegistry, text: str) -> None:
    """Before anything is planned."""
    assert "no time of day" in (await ask(offline, text)).text


async def test_it_sums_up_what_was_said(offline: ModelRegistry) -> None:
    """From the transcript alone."""
    outcome = await ask(offline, "sum up", user("first thing"), user("second  thing\nwith lines"))

    assert "2 messages" in outcome.text
    assert "- first thing\n- second thing with lines" in outcome.text
    assert "Nothing" in (await ask(offline, "sum up")).text


async def test_it_streams_and_costs_nothing(offline: ModelRegistry) -> None:
    """Like a real model, in a few pieces."""
    outcome = await ask(offline, "hello")

    assert 2 <= outcome.kinds.count("text_delta") <= 5
    assert outcome.done.usage.cost.total == 0


async def test_a_reminder_that_is_due_reminds(offline: ModelRegistry) -> None:
    """Its prompt comes back to this very model; and one without a time is asked for it."""
    assert (await ask(offline, "Remind me now: stand up")).text == "Reminder: stand up"
    assert (await ask(offline, "remind me to stand up")).text.startswith("When?")


@pytest.mark.parametrize(
    "text", ["add " + " " * 200_000, "add " + "x " * 100_000, "hello" + "!" * 200_000 + "x", "remember" + " " * 200_000]
)
async def test_a_huge_message_is_answered_at_once(offline: ModelRegistry, text: str) -> None:
    """A pattern that tried all ways through it would not end before the test's time is up."""
    assert (await ask(offline, text)).is_well_formed()
