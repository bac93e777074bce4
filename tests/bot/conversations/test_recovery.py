"""What the next process makes of what the last one left."""

import asyncio
from datetime import timedelta
from pathlib import Path

from bot.migrations import all_migrations
from features.agent.testing import ScriptedProvider, answers, call, hangs
from features.contracts.tools import ToolInvocation, ToolResult
from features.storage import Database
from tests.bot.conversations.rig import eventually, opened


async def test_what_waited_is_answered_in_order(tmp_path: Path) -> None:
    """Accepted and told so: it is owed, whatever happened."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        rig.conversations.leave()
        await rig.inbox.accept([rig.chat().message("one"), rig.chat().message("two")])
    async with opened(tmp_path, ScriptedProvider(answers("first"), answers("second")), busy="follow_up") as rig:
        assert [(await rig.chat().answer()).text for _ in range(2)] == ["first", "second"]


async def test_a_cut_run_goes_on_without_its_prompt_being_put_in_again(tmp_path: Path) -> None:
    """The model sees the question once, and the person one answer, unmarked: nothing was ever shown."""
    async with opened(tmp_path, ScriptedProvider(hangs())) as rig:
        rig.chat().says("hello")
        await rig.asked(1)
    provider = ScriptedProvider(answers("Hello after all."))
    async with opened(tmp_path, provider) as rig:
        answer = await rig.chat().answer()
        await rig.idle()

        assert (answer.text, answer.possible_duplicate) == ("Hello after all.", False)
        assert rig.prompts(0) == ["hello"]
        assert await rig.inbox_states() == ["answered"]
        assert len(await rig.rows("SELECT 1 FROM outbox")) == 1


async def test_a_run_cut_in_a_tool_goes_on_with_a_result_that_says_so(tmp_path: Path) -> None:
    """Every call has one result; the model is not asked to guess."""

    async def forever(call: ToolInvocation) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")))) as rig:
        rig.tool._run = forever
        rig.chat().says("work")
        await eventually(lambda: bool(rig.tool.calls))
    async with opened(tmp_path, ScriptedProvider(answers("I was cut off, but here."))) as rig:
        assert (await rig.chat().answer()).text == "I was cut off, but here."


async def test_what_came_during_the_cut_run_joins_its_resumption(tmp_path: Path) -> None:
    """A steered message that the session had and the model had not is still waiting."""
    async with opened(tmp_path, ScriptedProvider(hangs())) as rig:
        rig.chat().says("one")
        await rig.asked(1)
        rig.chat().says("two")
        await eventually(lambda: rig.conversation().status().queued == 1)
    async with opened(tmp_path, ScriptedProvider(answers("both"), answers("both"))) as rig:
        await rig.chat().answer()
        await rig.idle()

        said = {text for request in range(len(rig.provider.requests)) for text in rig.prompts(request)}
        assert said == {"one", "two"}
        assert await rig.inbox_states() == ["answered", "answered"]


async def test_a_draft_left_on_show_becomes_the_answer(tmp_path: Path) -> None:
    """Not a second message beside the torso."""
    async with opened(tmp_path, ScriptedProvider(hangs("Once upon a time")), stream=True) as rig:
        rig.chat().says("tell me a story")
        draft = await rig.chat().draft("Once upon")
        await eventually(lambda: rig.conversation()._runs.books._draft == draft.ref)
        await eventually(lambda: rig.outbox.idle)
        left = rig.chat().shown
    async with opened(tmp_path, ScriptedProvider(answers("Once upon a time there was a stone.")), stream=True) as rig:
        rig.chat().shown += left
        answer = await rig.chat().answer()

        assert (answer.text, answer.possible_duplicate) == ("Once upon a time there was a stone.", False)
        assert len(rig.chat().shown) == 1


async def test_an_old_stop_does_not_stop_what_was_resumed(tmp_path: Path) -> None:
    """It was meant for a run that has died since; that is said."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        rig.conversations.leave()
        await rig.inbox.accept([rig.chat().message("hello"), rig.chat().message("/stop")])
    async with opened(tmp_path, ScriptedProvider(answers("here I am"))) as rig:
        texts = {(await rig.chat().answer()).text for _ in range(2)}
        await rig.idle()

        assert "here I am" in texts
        assert any("/stop" in text for text in texts)
        assert await rig.inbox_states() == ["answered", "skipped"]


async def test_old_messages_are_answered_however_old(tmp_path: Path) -> None:
    """Only commands grow stale."""
    async with opened(tmp_path, ScriptedProvider(answers("better late"))) as rig:
        rig.chat().says("hello?", sent_at=rig.clock.now() - timedelta(days=2))

        assert (await rig.chat().answer()).text == "better late"


async def test_a_parked_run_goes_on_at_the_next_start(tmp_path: Path) -> None:
    """An orderly end in the middle of a run owes its answer all the same, and tells nobody of a stop."""
    async with opened(tmp_path, ScriptedProvider(hangs("half an ans"))) as rig:
        rig.chat().says("hello")
        await rig.asked(1)
        rig.conversations.leave()
        settling = asyncio.ensure_future(rig.conversations.settle(5))
        await eventually(lambda: rig.clock.sleepers >= 1)
        await rig.clock.advance(5)
        await settling
        assert rig.chat().shown == []
    async with opened(tmp_path, ScriptedProvider(answers("the whole answer"))) as rig:
        assert (await rig.chat().answer()).text == "the whole answer"
        assert rig.prompts(0) == ["hello"]


async def test_a_stopped_run_is_not_taken_up_again(tmp_path: Path) -> None:
    """The person said so."""
    async with opened(tmp_path, ScriptedProvider(hangs())) as rig:
        rig.chat().says("hello")
        await rig.asked(1)
        rig.chat().says("/stop")
        await rig.chat().answer()
        await rig.chat().answer()
        await rig.idle()
    async with opened(tmp_path, ScriptedProvider()) as rig:
        await rig.idle()
        assert rig.chat().shown == []


async def test_a_session_that_is_gone_is_told(tmp_path: Path) -> None:
    """The run cannot go on; the person hears it, and the chat begins afresh."""
    async with opened(tmp_path, ScriptedProvider(hangs())) as rig:
        rig.chat().says("hello")
        await rig.asked(1)
    async with Database(tmp_path / "state.db", all_migrations()) as database:
        await database.write(lambda t: t.execute("DELETE FROM sessions"))
    async with opened(tmp_path, ScriptedProvider(answers("afresh"))) as rig:
        assert "no longer there" in (await rig.chat().answer()).text
        rig.chat().says("hello again")

        assert (await rig.chat().answer()).text == "afresh"
        await rig.idle()
        assert await rig.inbox_states() == ["answered", "answered"]


async def test_nothing_is_taken_up_for_a_channel_that_is_not_here(tmp_path: Path) -> None:
    """A terminal chat over the same data must not answer Telegram's backlog."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        rig.conversations.leave()
        message = rig.channel.chat("1").message("hello")
        await rig.inbox.accept([message])
        await rig.database.write(lambda t: t.execute("UPDATE inbox SET address = 'fax:1'"))
    async with opened(tmp_path, ScriptedProvider()) as rig:
        assert len(rig.conversations) == 0
        assert await rig.inbox_states() == ["waiting"]
