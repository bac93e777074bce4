"""What becomes of a message while a run is going on."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from features.agent.testing import ScriptedProvider, answers, call, hangs
from features.contracts.errors import UserMustAct
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.sessions.testing import header
from tests.bot.conversations.rig import Rig, eventually, opened


class Gated:
    """A tool that works until it is let go."""

    def __init__(self, rig: Rig) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        rig.tool._run = self.run

    async def run(self, call: ToolInvocation) -> ToolResult:
        self.begun.set()
        await self.go_on.wait()
        return text_result("done")


async def test_steering_joins_the_run(tmp_path: Path) -> None:
    """The model hears it before its next call; one answer is for both."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), answers("as you wish"))) as rig:
        tool = Gated(rig)
        rig.chat().says("do it")
        await tool.begun.wait()
        rig.chat().says("but gently")
        await eventually(lambda: rig.conversation().status().queued == 1)
        tool.go_on.set()

        assert (await rig.chat().answer()).text == "as you wish"
        assert rig.prompts(1) == ["do it", "but gently"]
        await rig.idle()
        assert await rig.inbox_states() == ["answered", "answered"]
        assert len(await rig.rows("SELECT 1 FROM outbox")) == 1


async def test_a_follow_up_waits_and_gets_an_answer_of_its_own(tmp_path: Path) -> None:
    """One question after the other, each with its answer."""
    provider = ScriptedProvider(answers(call("c", "work")), answers("first"), answers("second"))
    async with opened(tmp_path, provider, busy="follow_up") as rig:
        tool = Gated(rig)
        rig.chat().says("one")
        await tool.begun.wait()
        rig.chat().says("two")
        await rig.arrived(2)
        tool.go_on.set()

        assert [(await rig.chat().answer()).text for _ in range(2)] == ["first", "second"]
        assert rig.prompts(1) == ["one"]


async def test_interrupt_stops_the_run_and_begins_with_the_new_message(tmp_path: Path) -> None:
    """What was said so far is delivered; the new message is not answered by the old run."""
    async with opened(tmp_path, ScriptedProvider(hangs("thinking aloud"), answers("new answer")), busy="interrupt") as rig:
        rig.chat().says("one")
        await eventually(lambda: any("thinking" in str(event) for _, event in rig.events) or len(rig.events) > 8)
        rig.chat().says("two")

        first, second = await rig.chat().answer(), await rig.chat().answer()
        assert second.text == "new answer"
        assert first.text in ("thinking aloud", "Stopped before there was an answer.") or "thinking aloud".startswith(first.text)
        await rig.idle()
        assert len(await rig.rows("SELECT DISTINCT run_id FROM inbox")) == 2


async def test_collect_gathers_what_comes_into_one_prompt(tmp_path: Path) -> None:
    """Three thoughts during a run are one question afterwards."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), answers("first"), answers("rest")), busy="collect") as rig:
        tool = Gated(rig)
        rig.chat().says("one")
        await tool.begun.wait()
        for text in ("two", "three", "four"):
            rig.chat().says(text)
        await rig.arrived(4)
        tool.go_on.set()

        assert [(await rig.chat().answer()).text for _ in range(2)] == ["first", "rest"]
        assert rig.prompts(2) == ["one", "two\nthree\nfour"]
        await rig.idle()
        assert len(await rig.rows("SELECT DISTINCT run_id FROM inbox")) == 2


async def test_stop_acts_at_once_and_keeps_what_waits(tmp_path: Path) -> None:
    """It does not stand in the queue behind what it is to stop; what waits is said and answered next."""
    async with opened(tmp_path, ScriptedProvider(hangs(), answers("the second")), busy="follow_up") as rig:
        rig.chat().says("one")
        await rig.asked(1)
        rig.chat().says("two")
        await rig.arrived(2)
        rig.chat().says("/stop")
        texts = [(await rig.chat().answer()).text for _ in range(3)]

        assert any("1 queued message is kept" in text for text in texts)
        assert "the second" in texts
        await rig.idle()
        assert await rig.inbox_states() == ["answered"] * 3


async def test_stop_kills_a_tool(tmp_path: Path) -> None:
    """Not only the model call."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")))) as rig:
        tool = Gated(rig)
        rig.chat().says("one")
        await tool.begun.wait()
        rig.chat().says("/stop")

        texts = sorted([(await rig.chat().answer()).text for _ in range(2)])
        assert texts == ["Stopped before there was an answer.", "Stopped."]
        assert not rig.conversation().status().running


async def test_stop_with_nothing_going_on_says_so(tmp_path: Path) -> None:
    """A true word instead of a shrug."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        rig.chat().says("/stop")

        assert (await rig.chat().answer()).text == "Nothing was running."


async def test_new_during_a_run_stops_it_and_its_late_output_stays_behind(tmp_path: Path) -> None:
    """The fresh session begins empty."""
    async with opened(tmp_path, ScriptedProvider(hangs("old"), answers("fresh"))) as rig:
        rig.chat().says("old question")
        await rig.asked(1)
        rig.chat().says("/new")
        texts = [(await rig.chat().answer()).text for _ in range(2)]
        assert any("fresh session" in text for text in texts)
        rig.chat().says("new question")

        assert (await rig.chat().answer()).text == "fresh"
        assert rig.prompts(1) == ["new question"]
        sessions = await rig.conversation().moves.list()
        assert sorted(session.message_count for session in sessions) == [2, 2]


async def test_a_command_works_while_a_run_is_going_on(tmp_path: Path) -> None:
    """/status is for exactly this moment."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work", text="the roof")), answers("done"))) as rig:
        tool = Gated(rig)
        rig.chat().says("work")
        await tool.begun.wait()
        rig.chat().says("/status")
        text = (await rig.chat().answer()).text
        rig.chat().says("/name The roof")
        assert "The roof" in (await rig.chat().answer()).text
        tool.go_on.set()

        assert "work the roof" in text
        assert (await rig.chat().answer()).text == "done"


async def test_a_session_too_old_to_be_listed_can_be_deleted_by_its_whole_id(tmp_path: Path) -> None:
    """The page lists the sessions of all chats and deletes by id; a chat with a thousand newer ones must not hide it."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        scope = str(rig.chat().address)
        await rig.store.create(scope, header("the-oldest", timestamp="2020-01-01T00:00:00Z"), make_current=False)
        await rig.store.create("loop:2", header("of-another"), make_current=False)
        await asyncio.gather(*(rig.store.create(scope, header(f"newer-{number}"), make_current=False) for number in range(1000)))
        await rig.conversation().moves.delete("the-oldest")

        assert await rig.store.summary("the-oldest") is None
        with pytest.raises(UserMustAct):
            await rig.conversation().moves.delete("of-another")


async def test_a_session_comes_back_and_one_can_be_deleted(tmp_path: Path) -> None:
    """/sessions, /resume, /delete keep their word, and only for this chat's own."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"), answers("three"))) as rig:
        rig.chat().says("first")
        await rig.chat().answer()
        first = (await rig.conversation().session()).id
        rig.chat().says("/new")
        await rig.chat().answer()
        rig.chat().says("second")
        await rig.chat().answer()
        rig.chat().says(f"/resume {first}")
        await rig.chat().answer()
        rig.chat().says("third")
        await rig.chat().answer()
        assert rig.prompts(2) == ["first", "third"]

        rig.chat("2").says(f"/resume {first}")
        assert "no such session" in (await rig.chat("2").answer()).text
        rig.chat("2").says(f"/delete {first} yes")
        assert "no session" in (await rig.chat("2").answer()).text
        rig.chat().says(f"/delete {first} yes")
        await rig.chat().answer()
        assert first not in [session.id for session in await rig.store.list()]


async def test_old_commands_are_not_carried_out_but_named(tmp_path: Path) -> None:
    """A /new from last night, delivered after an outage, would throw away this morning."""
    async with opened(tmp_path, ScriptedProvider(answers("of course"))) as rig:
        old = rig.clock.now() - timedelta(hours=3)
        rig.chat().says("still there?", sent_at=old)
        rig.chat().says("/new", sent_at=old)
        rig.chat().says("/stop", sent_at=old)
        await rig.chat().until(lambda: any("/stop" in shown.text for shown in rig.chat().shown))
        await rig.chat().until(lambda: any("of course" in shown.text for shown in rig.chat().shown))
        await rig.idle()
        texts = [shown.text for shown in rig.chat().shown]

        assert texts.count("of course") == 1
        named = "".join(text for text in texts if text != "of course")  # what arrives apart may be named apart
        assert "/new" in named
        assert "/stop" in named
        assert sorted(await rig.inbox_states()) == ["answered", "skipped", "skipped"]
        assert len(await rig.conversation().moves.list()) == 1


async def test_a_button_is_a_command_of_whoever_pressed(tmp_path: Path) -> None:
    """Pressing is typing."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        rig.chat().presses("/busy collect")
        await rig.chat().answer()

        assert (await rig.settings.get(rig.chat().address)).busy == "collect"


async def test_a_mistyped_command_is_pointed_out(tmp_path: Path) -> None:
    """Not answered by the model, which would pretend."""
    async with opened(tmp_path, ScriptedProvider(answers("a path"))) as rig:
        rig.chat().says("/statsu")
        assert "/status" in (await rig.chat().answer()).text
        rig.chat().says("/etc/hosts")

        assert (await rig.chat().answer()).text == "a path"


async def test_an_edit_of_what_still_waits_replaces_it(tmp_path: Path) -> None:
    """Nobody asks the old question any more."""
    provider = ScriptedProvider(answers(call("c", "work")), answers("first"), answers("second"))
    async with opened(tmp_path, provider, busy="follow_up") as rig:
        tool = Gated(rig)
        rig.chat().says("one")
        await tool.begun.wait()
        message = rig.chat().says("tow")
        await rig.arrived(2)
        rig.chat().edits(message, "two")
        await rig.arrived(3)
        await eventually(lambda: bool(rig.conversation()._pending.held and rig.conversation()._pending.held[0].edits))
        tool.go_on.set()
        await rig.chat().answer()
        await rig.chat().answer()

        assert rig.prompts(2) == ["one", "two"]
        await rig.idle()
        assert await rig.inbox_states() == ["answered"] * 3


@pytest.mark.parametrize("busy", ["steer", "follow_up"])
async def test_an_edit_of_what_the_run_works_on_steers_it(tmp_path: Path, busy: str) -> None:
    """It corrects what is being done, whatever the mode."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), answers("corrected")), busy=busy) as rig:
        tool = Gated(rig)
        message = rig.chat().says("paint it red")
        await tool.begun.wait()
        rig.chat().edits(message, "paint it blue")
        await eventually(lambda: rig.conversation().status().queued == 1)
        tool.go_on.set()
        await rig.chat().answer()

        assert "corrected my earlier message" in rig.prompts(1)[1]
        assert rig.prompts(1)[1].endswith("paint it blue")


async def test_an_edit_of_what_was_steered_and_not_yet_heard_changes_it_in_the_queue(tmp_path: Path) -> None:
    """The session has it already, the model not yet."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), answers("ok"))) as rig:
        tool = Gated(rig)
        rig.chat().says("one")
        await tool.begun.wait()
        message = rig.chat().says("tow")
        await eventually(lambda: rig.conversation().status().queued == 1)
        rig.chat().edits(message, "two")
        session = await rig.conversation().session()
        await eventually(lambda: [prompt.text for prompt in session.queued] == ["two"])
        tool.go_on.set()
        await rig.chat().answer()

        assert rig.prompts(1) == ["one", "two"]


async def test_an_edit_of_what_was_answered_is_noted_for_the_next_turn(tmp_path: Path) -> None:
    """No second answer to it, and no silence about it."""
    async with opened(tmp_path, ScriptedProvider(answers("red it is"), answers("yes, blue"))) as rig:
        message = rig.chat().says("paint it red")
        await rig.chat().answer()
        await rig.idle()
        rig.chat().edits(message, "paint it blue")
        await rig.arrived(2)
        await eventually(lambda: rig.conversation()._pending.has_notes)
        rig.chat().says("did you see?")
        await rig.chat().answer()

        assert rig.prompts(1)[1].endswith("paint it blue)\ndid you see?")
        await rig.idle()
        assert await rig.inbox_states() == ["answered"] * 3


async def test_an_edit_that_changes_no_text_is_nothing(tmp_path: Path) -> None:
    """A platform tells of previews and reactions as edits too."""
    async with opened(tmp_path, ScriptedProvider(answers("yes"))) as rig:
        message = rig.chat().says("hello")
        await rig.chat().answer()
        rig.chat().edits(message, "hello")
        await rig.arrived(2)
        await rig.idle()

        assert await rig.inbox_states() == ["answered", "skipped"]


async def test_an_edit_never_becomes_a_command(tmp_path: Path) -> None:
    """An old message edited to /new would be obeyed once more with each edit."""
    async with opened(tmp_path, ScriptedProvider(answers("yes"))) as rig:
        message = rig.chat().says("hello")
        await rig.chat().answer()
        rig.chat().edits(message, "/new")

        assert "no command" in (await rig.chat().answer()).text
        assert len(await rig.conversation().moves.list()) == 1
