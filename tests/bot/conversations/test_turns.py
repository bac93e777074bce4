"""From a message to an answer."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from features.agent.testing import ScriptedProvider, answers, call, fails, hangs
from features.contracts.chat import Person
from tests.bot.conversations.rig import eventually, opened


async def test_a_message_is_answered(tmp_path: Path) -> None:
    """The whole way, and its books."""
    provider = ScriptedProvider(answers("Hello Anna."))
    async with opened(tmp_path, provider) as rig:
        rig.chat().says("hello")
        answer = await rig.chat().answer()
        await rig.idle()

        assert answer.text == "Hello Anna."
        assert rig.prompts(0) == ["hello"]
        assert await rig.inbox_states() == ["answered"]
        assert await rig.rows("SELECT state, answers FROM outbox") == [("sent", f'["{(await rig.rows("SELECT id FROM inbox"))[0][0]}"]')]
        provider.check()


async def test_a_plain_turn_of_a_loaded_session_costs_four_commits(tmp_path: Path) -> None:
    """Accepted; taken in; answered; sent. Everything else joins one of them."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"))) as rig:
        rig.chat().says("first")
        await rig.chat().answer()
        await rig.idle()
        before = rig.database.commits
        rig.chat().says("second")
        await rig.chat().answer()
        await rig.idle()

        assert rig.database.commits - before == 4


async def test_two_quick_messages_are_one_run(tmp_path: Path) -> None:
    """The second steers the first; nothing is answered twice or out of order."""
    async with opened(tmp_path, ScriptedProvider(answers("let me see", call("c", "work")), answers("both"))) as rig:
        rig.chat().says("first")
        rig.chat().says("second")
        answer = await rig.chat().answer()
        await rig.idle()

        assert answer.text == "both"
        assert rig.prompts(1) == ["first", "second"]
        runs = await rig.rows("SELECT DISTINCT run_id FROM inbox")
        assert len(runs) == 1
        assert await rig.inbox_states() == ["answered", "answered"]


async def test_chats_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """One hangs, the other is answered."""
    async with opened(tmp_path, ScriptedProvider(hangs(), answers("quick"))) as rig:
        rig.chat("1").says("slow")
        await rig.asked(1)
        rig.chat("2").says("quick?")

        assert (await rig.chat("2").answer()).text == "quick"


async def test_a_group_message_says_who_spoke_and_its_answer_whom_it_answers(tmp_path: Path) -> None:
    """The model must tell people apart, and the people the answers."""
    async with opened(tmp_path, ScriptedProvider(answers("hi"))) as rig:
        message = rig.chat(group=True).says("who am I?", sender=Person(id="loop:7", name="Bea"))
        answer = await rig.chat().answer()

        assert rig.prompts(0) == ["Bea: who am I?"]
        assert answer.reply_to == message.ref


async def test_an_album_is_one_turn_with_all_its_captions(tmp_path: Path) -> None:
    """Each picture arrives on its own; five pictures are not five questions."""
    async with opened(tmp_path, ScriptedProvider(answers("nice"))) as rig:
        for number in range(3):
            rig.chat().says(f"picture {number}", album="a1")
        await rig.arrived(3)
        await rig.clock.advance(0.5)
        rig.chat().says("picture 3", album="a1")
        await rig.arrived(4)
        await rig.clock.advance(0.5)
        assert rig.provider.requests == []
        await rig.clock.advance(0.5)

        assert (await rig.chat().answer()).text == "nice"
        assert rig.prompts(0) == ["picture 0\npicture 1\npicture 2\npicture 3"]


async def test_a_long_text_that_the_app_cut_is_one_turn(tmp_path: Path) -> None:
    """Pieces near the platform's limit are followed by the rest within the second."""
    async with opened(tmp_path, ScriptedProvider(answers("read"))) as rig:
        rig.chat().says("a" * 4090)
        rig.chat().says("b" * 50)

        assert (await rig.chat().answer()).text == "read"
        assert rig.prompts(0) == ["a" * 4090 + "\n" + "b" * 50]


async def test_a_long_text_alone_waits_only_a_moment(tmp_path: Path) -> None:
    """Nothing follows; after 0.8 s it is taken as it is."""
    async with opened(tmp_path, ScriptedProvider(answers("read"))) as rig:
        rig.chat().says("a" * 4090)
        await rig.arrived(1)
        await rig.clock.advance(0.9)

        assert (await rig.chat().answer()).text == "read"


async def test_a_command_ends_the_gathering(tmp_path: Path) -> None:
    """A person who types /new did not mean it as the rest of a text."""
    async with opened(tmp_path, ScriptedProvider(answers("read"))) as rig:
        rig.chat().says("a" * 4090)
        rig.chat().says("/name Long texts")

        texts = {(await rig.chat().answer()).text for _ in range(2)}
        assert "read" in texts


async def test_a_message_with_nothing_in_it_is_told(tmp_path: Path) -> None:
    """A sticker, or white space; never silence, and no question to the model."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        rig.chat().says("   ")

        assert "nothing" in (await rig.chat().answer()).text
        assert await rig.inbox_states() == ["answered"]


async def test_a_failure_is_told_in_words(tmp_path: Path) -> None:
    """Never silence, never a stack trace."""
    async with opened(tmp_path, ScriptedProvider(fails("auth", error="401 key sk-123"))) as rig:
        rig.chat().says("hello")
        text = (await rig.chat().answer()).text

        assert "key" in text
        assert "(error id-" in text
        assert "sk-123" not in text


async def test_a_model_that_is_gone_is_told_and_the_chat_goes_on(tmp_path: Path) -> None:
    """What the settings name may be taken from the configuration any day."""
    async with opened(tmp_path, ScriptedProvider(answers("back")), model="scripted/gone") as rig:
        rig.chat().says("hello")
        assert "no model" in (await rig.chat().answer()).text
        await rig.settings.change(rig.chat().address, model="scripted/one")
        rig.chat().says("and now?")

        assert (await rig.chat().answer()).text == "back"
        assert await rig.inbox_states() == ["answered", "answered"]


async def test_a_defect_is_told_with_its_id_and_the_next_message_is_answered(tmp_path: Path) -> None:
    """One turn breaks; the actor and all other chats live."""
    async with opened(tmp_path, ScriptedProvider(answers("fine"))) as rig:
        conversation = rig.conversation()
        working = conversation._seat.get

        async def broken() -> None:
            raise ZeroDivisionError

        conversation._seat.get = broken  # type: ignore[method-assign, assignment]
        rig.chat().says("hello")
        assert "inside this host" in (await rig.chat().answer()).text
        conversation._seat.get = working  # type: ignore[method-assign]
        rig.chat().says("again")

        assert (await rig.chat().answer()).text == "fine"


async def test_more_messages_than_memory_holds_are_all_answered_in_order(tmp_path: Path) -> None:
    """While one run hangs a hundred messages arrive; they wait on the disk."""
    provider = ScriptedProvider(hangs(), *(answers(f"answer {n}") for n in range(120)))
    async with opened(tmp_path, provider, busy="follow_up") as rig:
        rig.chat().says("first")
        await rig.asked(1)
        for number in range(120):
            rig.chat().says(f"message {number}")
        await eventually(lambda: rig.channel._arrived.empty())
        rig.chat().says("/stop")
        texts = [(await rig.chat().answer()).text for _ in range(122)]

        assert [text for text in texts if text.startswith("answer")] == [f"answer {n}" for n in range(120)]


async def test_an_idle_conversation_is_dropped_and_comes_back_with_its_history(tmp_path: Path) -> None:
    """Thousands of chats are known, few are awake."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"))) as rig:
        sweeping = asyncio.ensure_future(rig.conversations.sweep())
        rig.chat().says("first")
        await rig.chat().answer()
        await rig.idle()
        await rig.clock.advance(29 * 60)
        assert len(rig.conversations) == 1
        await rig.clock.advance(2 * 60)
        await eventually(lambda: len(rig.conversations) == 0)
        rig.chat().says("second")
        await rig.chat().answer()
        sweeping.cancel()

        assert rig.prompts(1) == ["first", "second"]


async def test_full_outputs_that_nobody_will_ask_for_are_deleted_when_the_chat_is_loaded(tmp_path: Path) -> None:
    """A long output may be 64 MB; a host that is never cleaned fills its disk."""
    async with opened(tmp_path, ScriptedProvider(answers("ok"))) as rig:
        scratch = tmp_path / "workspaces" / "loop-1" / ".pumice" / "tmp"
        scratch.mkdir(parents=True)
        for name, days in (("old.log", 15), ("recent.log", 13)):
            (scratch / name).write_text("output")
            written = (rig.clock.now() - timedelta(days=days)).timestamp()
            os.utime(scratch / name, (written, written))
        rig.chat().says("hello")
        await rig.chat().answer()

        assert [file.name for file in scratch.iterdir()] == ["recent.log"]
