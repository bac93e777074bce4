"""Walking the tree, forking, taking back and answering anew, in a chat."""

from pathlib import Path

import msgspec
import pytest

from bot.testing import Shown
from features.agent.testing import ScriptedProvider, answers, hangs
from features.contracts.extension_events import ExtensionEvent, GateEvent
from tests.bot.conversations.rig import Rig, eventually, opened


async def talk(rig: Rig, *texts: str) -> None:
    for text in texts:
        rig.chat().says(text)
        await rig.chat().answer()


async def says(rig: Rig, text: str) -> Shown:
    rig.chat().says(text)
    return await rig.chat().answer()


def buttons(shown: Shown) -> list[str]:
    return [command for row in shown.buttons for command in row]


async def test_the_tree_is_shown_and_its_buttons_go_there(tmp_path: Path) -> None:
    """Places are what people said and where branches end; going back and forth loses nothing."""
    async with opened(tmp_path, ScriptedProvider(answers("paris"), answers("louvre"), answers("rome"), answers("forum"))) as rig:
        await talk(rig, "plan a trip", "see art")
        assert (await says(rig, "/undo")).text.endswith("There you had said:\n> see art\n\nSay it again, or something else.")
        await talk(rig, "go south instead")
        shown = await says(rig, "/tree")
        lines = shown.text.split("```")[1].strip().splitlines()
        assert [line.split("  ", 1)[1] for line in lines] == [
            "plan a trip",
            "├─ see art",
            "│  → louvre",
            "└─ go south instead",
            "   → rome  ◀ here",
        ]

        louvre = next(command for command in buttons(shown) if command == f"/tree {lines[2].split()[0]}")
        rig.chat().presses(louvre)
        arrived = await rig.chat().answer()
        assert arrived.text == "Here we go on after:\n> louvre"
        assert rig.conversation().status().running is False
        rig.chat().presses(buttons(arrived)[0])
        assert "> rome" in (await rig.chat().answer()).text
        await talk(rig, "what is there")
        assert rig.prompts(3) == ["plan a trip", "go south instead", "what is there"]


async def test_the_place_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """Also when nothing was said there yet."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"))) as rig:
        await talk(rig, "first", "second")
        await says(rig, "/undo")
    async with opened(tmp_path, ScriptedProvider(answers("three"))) as rig:
        await talk(rig, "third")
        assert rig.prompts(0) == ["first", "third"]


async def test_retry_brings_another_answer_to_the_command(tmp_path: Path) -> None:
    """It answers `/retry`; the prompt is in the context once."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("better"))) as rig:
        await talk(rig, "first")
        assert (await says(rig, "/retry")).text == "better"
        await rig.idle()
        assert rig.prompts(1) == ["first"]
        assert await rig.inbox_states() == ["answered", "answered"]
        rows = await rig.rows("SELECT count(*) FROM outbox")
        assert rows == [(2,)]


async def test_undo_in_a_run_stops_it_and_says_both(tmp_path: Path) -> None:
    """What had been said of the answer is delivered, then what was taken back."""
    async with opened(tmp_path, ScriptedProvider(hangs("half an answer"), answers("fresh"))) as rig:
        rig.chat().says("first")
        await rig.asked(1)
        rig.chat().says("/undo")
        texts = [(await rig.chat().answer()).text for _ in range(2)]
        assert any("half an answer" in text for text in texts)
        assert any("> first" in text and "from the beginning" in text for text in texts)
        await talk(rig, "other")
        assert rig.prompts(1) == ["other"]


async def test_a_fork_is_gone_on_with_and_the_old_session_stays(tmp_path: Path) -> None:
    """From where one is, from a named place, and from before what somebody said."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"), answers("three"), answers("four"))) as rig:
        await talk(rig, "first")
        assert "is called **the start** now" in (await says(rig, "/label the start")).text
        await talk(rig, "second")
        first = rig.conversation().status().session_id
        forked = await says(rig, "/fork the start")
        assert "> one" in forked.text
        assert rig.conversation().status().session_id != first
        await talk(rig, "third")
        assert rig.prompts(2) == ["first", "third"]

        assert len(await rig.conversation().moves.list()) == 2
        await says(rig, f"/resume {first}")
        (second,) = [entry.id for entry in (await rig.store.load(first or ""))[1] if "second" in str(entry)]
        before = await says(rig, f"/fork {second}")
        assert "There you had said:\n> second" in before.text
        await talk(rig, "fourth")
        assert rig.prompts(3) == ["first", "fourth"]


async def test_a_label_is_taken_away_again(tmp_path: Path) -> None:
    """And a place without one is not found by it."""
    async with opened(tmp_path, ScriptedProvider(answers("one"))) as rig:
        await talk(rig, "first")
        await says(rig, "/label start")
        assert "[start]" in (await says(rig, "/tree")).text
        assert (await says(rig, "/label -")).text == "This place has no name any more."
        assert "There is no such place" in (await says(rig, "/tree start")).text
        assert "What should this place be called?" in (await says(rig, "/label")).text


@pytest.mark.parametrize("form", ["html", "md", "jsonl"])
async def test_the_session_is_sent_as_a_file(tmp_path: Path, form: str) -> None:
    """For people, or for pi."""
    async with opened(tmp_path, ScriptedProvider(answers("one"))) as rig:
        await talk(rig, "first")
        shown = await says(rig, f"/export {form}")
        assert shown.files[0].endswith(f".{form}")
        (written,) = (tmp_path / "workspaces").rglob(shown.files[0])
        assert "first" in written.read_text()
        if form == "jsonl":
            assert msgspec.json.decode(written.read_text().splitlines()[0])["version"] == 3


async def test_a_chat_without_a_session_is_told_what_to_do(tmp_path: Path) -> None:
    """Nothing is made by looking."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        for command in ("/tree", "/undo", "/retry", "/fork", "/label x", "/export"):
            assert (await says(rig, command)).text == "There is no session here yet. Just write something."
        assert await rig.conversation().moves.list() == []
        assert "none of html, md, jsonl" in (await says(rig, "/export pdf")).text


async def test_a_place_that_is_not_there_or_not_one(tmp_path: Path) -> None:
    """The beginning of an id serves where it is one place's alone."""
    async with opened(tmp_path, ScriptedProvider(answers("one"))) as rig:
        await talk(rig, "first")
        assert "no such place" in (await says(rig, "/tree zzzz")).text
        assert "no such place" in (await says(rig, "/fork x")).text


def refusing(rig: Rig, *, refuse: bool = True) -> list[str]:
    """Put an extension that says no to everything into the session at work."""
    heard: list[str] = []

    async def tell(event: ExtensionEvent) -> None:
        heard.append(event.name)
        if refuse and isinstance(event, GateEvent):
            event.cancel("not today")

    session = rig.conversation()._seat.current
    assert session is not None
    session.moves.tell = tell
    return heard


@pytest.mark.parametrize("command", ["/new", "/undo", "/retry", "/fork", "/tree first", "/resume {other}", "/delete {this} yes"])
async def test_what_an_extension_forbids_does_not_happen(tmp_path: Path, command: str) -> None:
    """The run goes on, the session stays, and the person reads why."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"), hangs("half"))) as rig:
        await talk(rig, "earlier")
        other = rig.conversation().status().session_id
        await says(rig, "/new")
        await talk(rig, "first")
        await says(rig, "/label first")
        this = rig.conversation().status().session_id
        assert other is not None
        assert this is not None
        rig.chat().says("second")
        await rig.asked(3)
        heard = refusing(rig)
        before = await rig.store.load(this)
        shown = await says(rig, command.format(other=other, this=this))

        assert "not today" in shown.text
        assert len(heard) == 1
        assert rig.conversation().status().running
        assert rig.conversation().status().session_id == this
        assert await rig.store.load(this) == before
        assert len(await rig.conversation().moves.list()) == 2


async def test_a_session_that_is_not_in_memory_is_asked_too(tmp_path: Path) -> None:
    """Its extensions have a say, although the chat was idle long enough to be dropped."""
    async with opened(tmp_path, ScriptedProvider(answers("one"))) as rig:
        await talk(rig, "first")
    async with opened(tmp_path, ScriptedProvider()) as rig:
        assert rig.conversation()._seat.current is None
        await says(rig, "/new")
        assert rig.conversation().status().session_id is not None
        assert len(await rig.conversation().moves.list()) == 2


async def test_notes_come_along_where_they_are_asked_for(tmp_path: Path) -> None:
    """`/stop` gives up the writing of them, and nothing has moved then."""
    async with opened(
        tmp_path, ScriptedProvider(answers("one"), answers("two"), hangs(), answers("they saw two"), answers("three"))
    ) as rig:
        await talk(rig, "first")
        await says(rig, "/label start")
        await talk(rig, "second")
        rig.chat().says("/tree start summary")
        await rig.asked(3)
        rig.chat().says("/stop")
        texts = [(await rig.chat().answer()).text for _ in range(2)]
        assert any(text.startswith("Stopped.") for text in texts)
        assert "→ two  ◀ here" in (await says(rig, "/tree")).text
        await says(rig, "/tree start summary the price")
        await talk(rig, "third")

        assert "the price" in str(rig.provider.requests[3].messages) + rig.provider.requests[3].system_prompt
        assert "they saw two" in str(rig.provider.requests[4].messages)
        assert rig.prompts(4) == ["first", "third"]


async def test_messages_that_wait_are_answered_after_a_move(tmp_path: Path) -> None:
    """At the new place, in their order."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), hangs("half"), answers("three")), busy="follow_up") as rig:
        await talk(rig, "first")
        rig.chat().says("second")
        await rig.asked(2)
        rig.chat().says("third")
        await eventually(lambda: rig.conversation().status().queued == 1)
        rig.chat().says("/undo")
        await rig.asked(3)

        assert rig.prompts(2) == ["first", "third"]
