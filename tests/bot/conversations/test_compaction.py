"""Long conversations, models that fail and budgets, as a chat sees them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from features.agent.testing import ScriptedProvider, answers, call, fails, hangs
from features.compaction import CompactionOptions
from features.contracts.events import CompactionEnd, CompactionStart
from features.contracts.messages import Cost, Usage
from features.contracts.sessions import CompactionEntry
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.bot.conversations.rig import SEEING, Rig, eventually, opened

LONG = "long " * 160
"""Two hundred tokens: what is kept word for word."""
SHORT: dict[str, Any] = {"compaction": CompactionOptions(keep_recent_tokens=200)}


async def talk(rig: Rig, *texts: str) -> list[str]:
    said = []
    for text in texts:
        rig.chat().says(text)
        said.append((await rig.chat().answer()).text)
    return said


def compactions(rig: Rig) -> list[CompactionEnd]:
    return [event for _, event in rig.events if isinstance(event, CompactionEnd)]


async def test_compact_sums_up_and_says_so(tmp_path: Path) -> None:
    """With what the person wants to be looked at; its cost is counted."""
    spent = Usage(input=9, output=1, total_tokens=10, cost=Cost(total=0.5))
    async with opened(
        tmp_path, ScriptedProvider(answers("a1"), answers("a2"), answers("the notes", usage=spent), answers("a3")), **SHORT
    ) as rig:
        await talk(rig, "first " + LONG, "second " + LONG)
        [said] = await talk(rig, "/compact the prices")
        await talk(rig, "third")

        assert said.startswith("Summed up: what was said before takes about 2")
        assert "the prices" in rig.provider.requests[2].messages[0].content  # type: ignore[union-attr]
        assert rig.prompts(3) == ["second " + LONG, "third"]
        assert await rig.rows("SELECT calls, cost FROM usage") == [(4, 0.5)]
        assert not rig.channel.typing


async def test_compact_on_a_short_conversation_says_that_there_is_nothing_to_do(tmp_path: Path) -> None:
    async with opened(tmp_path, ScriptedProvider(answers("a1"))) as rig:
        [_, said] = await talk(rig, "hello", "/compact")

        assert said == "There is nothing to sum up yet: all of this conversation is recent."


async def test_a_summary_that_fails_is_told_with_an_id_and_the_chat_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The service's words are in the log under that id, not in the chat."""
    async with opened(
        tmp_path, ScriptedProvider(answers("a1"), answers("a2"), fails("invalid", error="schema 17"), answers("a3")), **SHORT
    ) as rig:
        [*_, said, last] = await talk(rig, "first " + LONG, "second " + LONG, "/compact", "third")

        assert last == "a3"
        assert "schema 17" not in said
        [record] = [record for record in caplog.records if record.message == "compaction failed"]
        assert record.__dict__["facts"]["error"] == "schema 17"
        assert f"(error {record.__dict__['facts']['error_id']})" in said


async def test_compact_while_something_runs_is_done_in_the_next_pause(tmp_path: Path) -> None:
    """The work is not thrown away; one status line tells, and a message when it is done."""
    steps = [answers("a1"), answers("a2"), answers(call("c1", "work")), answers("the notes"), answers("a3")]
    async with opened(tmp_path, ScriptedProvider(*steps), **SHORT) as rig:
        rig.tool._run = asking_for_it(rig)
        await talk(rig, "first " + LONG, "second " + LONG)
        rig.chat().says("third")
        said = [(await rig.chat().answer()).text for _ in range(3)]
        await rig.idle()

        assert said[0] == "I will, as soon as the step that I am at is done."
        assert sorted(said[1:], key=len) == ["a3", next(text for text in said if text.startswith("Summed up"))]
        assert "summing up what was said before" in rig.channel.status
        assert [event.reason for event in compactions(rig)] == ["manual"]


def asking_for_it(rig: Rig) -> Callable[[ToolInvocation], Awaitable[ToolResult]]:
    """A tool during which somebody asks for a compaction."""

    async def work(invocation: ToolInvocation) -> ToolResult:
        rig.chat().says("/compact")
        await eventually(lambda: any("as soon as" in shown.text for shown in rig.chat().shown))
        return text_result("worked")

    return work


async def test_stop_stops_a_compaction(tmp_path: Path) -> None:
    """At once, and nothing has changed; what was said meanwhile is answered next."""
    async with opened(tmp_path, ScriptedProvider(answers("a1"), answers("a2"), hangs("half"), answers("a3")), **SHORT) as rig:
        await talk(rig, "first " + LONG, "second " + LONG)
        rig.chat().says("/compact")
        await rig.asked(3)
        rig.chat().says("third")
        rig.chat().says("/stop")
        said = {(await rig.chat().answer()).text for _ in range(3)}

        assert any(text.startswith("Stopped.") for text in said)
        assert "Stopped before there was a summary; everything is as it was." in said
        assert "a3" in said
        assert not any(isinstance(entry, CompactionEntry) for entry in (await rig.conversation().session()).manager.branch())


async def test_a_conversation_that_outgrows_its_model_goes_on_by_itself(tmp_path: Path) -> None:
    """One status line, no message: there is nothing to do for the person."""
    full = Usage(input=120_000, total_tokens=120_000)
    async with opened(
        tmp_path, ScriptedProvider(answers("a1"), answers("a2", usage=full), answers("the notes"), answers("a3")), **SHORT
    ) as rig:
        said = await talk(rig, "first " + LONG, "second " + LONG, "third")

        assert said == ["a1", "a2", "a3"]
        assert rig.channel.status[0] == "summing up what was said before"
        assert [type(event).__name__ for _, event in rig.events if isinstance(event, CompactionStart | CompactionEnd)] == [
            "CompactionStart", "CompactionEnd",
        ]  # fmt: skip


async def test_a_message_that_is_too_large_is_said_in_plain_words(tmp_path: Path) -> None:
    """After one compaction and one more try; the service's words are in the log."""
    steps = [
        answers("a1"),
        answers("a2", usage=Usage(input=120_000, total_tokens=100_000)),
        fails("overflow"),
        answers("the notes"),
        fails("overflow", error="413 (no body)"),
    ]
    async with opened(tmp_path, ScriptedProvider(*steps), **SHORT) as rig:
        said = await talk(rig, "first " + LONG, "second " + LONG, "third")

        assert said[-1].startswith("This is more than the model can take in at once, and summing up what came before did not help.")
        assert "(error " in said[-1]
        assert "413" not in said[-1]


async def test_another_model_that_answers_is_named(tmp_path: Path) -> None:
    """People should know whom they are talking to."""
    async with opened(
        tmp_path, ScriptedProvider(fails("billing", error="raw words"), answers("hello")), fallbacks=(SEEING.reference,)
    ) as rig:
        rig.chat().says("hello")
        said = {(await rig.chat().answer()).text for _ in range(2)}

        assert said == {"scripted/one has no credit left, so scripted/eyes answers instead.", "hello"}


async def test_a_chat_that_has_spent_its_budget_is_told_and_makes_no_call(tmp_path: Path) -> None:
    """Another chat of the same host goes on, and this one tomorrow."""
    dear = Usage(input=9, output=1, total_tokens=10, cost=Cost(total=0.6))
    provider = ScriptedProvider(answers("a1", usage=dear), answers("a2", usage=dear), answers("other"), answers("next day"))
    async with opened(tmp_path, provider, budget=1.0) as rig:
        said = await talk(rig, "one", "two", "three")
        rig.chat("2").says("hello")
        other = await rig.chat("2").answer()
        await rig.clock.advance(24 * 3600)
        later = await talk(rig, "four")

        assert said[:2] == ["a1", "a2"]
        assert said[2].startswith("This chat has spent its budget for today: $1.2 of $1. It goes on after midnight (UTC)")
        assert "(error" not in said[2]
        assert (other.text, later) == ("other", ["next day"])
        assert rig.prompts(3)[-2:] == ["three", "four"]
