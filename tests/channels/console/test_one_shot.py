"""One question and its answer."""

import asyncio
from pathlib import Path

import pytest

from channels.console import one_answer
from channels.console.testing import MemoryConnection


@pytest.fixture
def chat() -> MemoryConnection:
    return MemoryConnection()


@pytest.mark.parametrize("settled_first", [True, False])
async def test_the_answer_comes_back_when_it_is_delivered_and_the_run_is_over(chat: MemoryConnection, settled_first: bool) -> None:
    """In whichever order the two are told."""

    def reply(identifier: str, text: str) -> None:
        chat.tell("agent_start")
        chat.deliver("by the way", told=True)
        if settled_first:
            chat.tell("agent_settled", outcome="success")
        chat.deliver("**42**", identifier)
        if not settled_first:
            chat.tell("agent_settled", outcome="success")

    chat.reply = reply
    answer = await one_answer(chat, "what is it?", [Path("a.png")])

    assert (answer.text, answer.failed) == ("**42**", False)
    assert chat.posted == [("what is it?", (Path("a.png"),))]


@pytest.mark.parametrize("by", ["run", "row"])
async def test_a_failed_run_is_told_as_one(chat: MemoryConnection, by: str) -> None:
    """A script must see it in the exit status."""

    def reply(identifier: str, text: str) -> None:
        chat.tell("agent_start")
        chat.tell("agent_settled", outcome="error" if by == "run" else "success")
        chat.deliver("The model refused the key.", identifier, outcome="error" if by == "row" else "success")

    chat.reply = reply

    assert (await one_answer(chat, "hi")).failed


async def test_a_commands_words_are_its_answer_although_they_name_no_message(chat: MemoryConnection) -> None:
    """``pumice chat /status`` works like any question."""
    chat.deliver("older words")
    chat.reply = lambda identifier, text: chat.deliver("All is well.")

    assert (await one_answer(chat, "/status")).text == "All is well."


async def test_an_answer_that_came_while_the_connection_was_lost_is_found(chat: MemoryConnection) -> None:
    """The log has it."""

    def reply(identifier: str, text: str) -> None:
        chat.tell("agent_start")
        chat.deliver("found", identifier, told=False)
        chat.tell("connected")
        chat.tell("resync")

    chat.reply = reply

    assert (await one_answer(chat, "hi")).text == "found"


async def test_ctrl_c_stops_the_run(chat: MemoryConnection) -> None:
    """It must not go on and cost money."""
    asked = asyncio.Event()

    def reply(identifier: str, text: str) -> None:
        asked.set()

    chat.reply = reply
    waiting = asyncio.create_task(one_answer(chat, "hi"))
    await asked.wait()
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert [text for text, _ in chat.posted] == ["hi", "/stop"]
