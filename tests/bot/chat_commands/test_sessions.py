"""Beginning, finding, naming and deleting sessions."""

from datetime import UTC, datetime

import pytest

from bot.chat_commands.testing import NotedStatus
from features.contracts.sessions import SessionSummary
from tests.bot.chat_commands.conftest import GUEST, OWNER, Chat


def session(session_id: str, name: str = "", first: str = "hi") -> SessionSummary:
    moment = datetime(2026, 1, 4, 23, 30, tzinfo=UTC)
    return SessionSummary(
        id=session_id, scope="telegram:1/7", name=name, created_at=moment, modified_at=moment, message_count=4, first_message=first
    )


@pytest.fixture(autouse=True)
def two_sessions(chat: Chat) -> None:
    chat.conversation.sessions = [session("ab-1", "Rome"), session("ab-2", first="*what* is\nnew")]
    chat.conversation.now = NotedStatus(session_id="ab-1", session_name="Rome")


async def test_new_starts_afresh_with_a_name(chat: Chat) -> None:
    """The old one is not lost, and that is said."""
    assert "`/sessions`" in await chat.says("/new Trip to Rome")
    await chat.says("/new")

    assert chat.conversation.deeds == [("new", "Trip to Rome"), ("new", "")]


async def test_sessions_are_listed_with_ids_and_buttons(chat: Chat) -> None:
    """In the chat's zone; other people's words are no markup; the present one needs no button."""
    said = await chat.says("/sessions")

    assert "- Rome (this one), 4 messages, 05 Jan 00:30\n  `ab-1`" in said
    assert "- \\*what\\* is new, 4 messages" in said
    assert chat.buttons == {"*what* is new": "/resume ab-2"}


async def test_a_long_list_is_cut(chat: Chat) -> None:
    """A message has a limit."""
    chat.conversation.sessions = [session(f"s-{number}") for number in range(50)]
    said = await chat.says("/sessions")

    assert "...and 30 older ones" in said
    assert len(chat.conversation.buttons) == 8


async def test_a_chat_without_sessions_says_so(chat: Chat) -> None:
    """An empty answer would look like a fault."""
    chat.conversation.sessions = []

    assert "no sessions yet" in await chat.says("/sessions")


async def test_resume_goes_back(chat: Chat) -> None:
    """By the whole id or its beginning; a session without a name is called by what was typed."""
    assert await chat.says("/resume ab-1") == "Back in Rome."
    assert await chat.says("/resume ab-2") == "Back in `ab-2`."
    assert await chat.says("/resume zz") == "There is no session zz here."
    assert "Which one?" in await chat.says("/resume")


async def test_delete_asks_first(chat: Chat) -> None:
    """It cannot be undone."""
    assert await chat.says("/delete ab-2") == "Delete \\*what\\* is new (4 messages) for good?"
    assert chat.conversation.deeds == []
    assert chat.buttons == {"Delete": "/delete ab-2 yes", "Keep": "/delete ab-2 no"}

    question = list(chat.conversation.buttons)
    assert await chat.presses(question[1]) == "\\*what\\* is new stays."
    assert chat.conversation.deeds == []
    await chat.presses(question[0])
    assert chat.conversation.deeds == [("delete", "ab-2")]


async def test_only_an_exact_session_is_deleted(chat: Chat) -> None:
    """Another chat's, a vanished or an ambiguous one never."""
    assert await chat.says("/delete ab yes") == "`ab` could be 2 sessions. Give more of its ID."
    assert await chat.says("/delete zz yes") == "There is no session `zz` here. `/sessions` lists them."
    assert "Which one?" in await chat.says("/delete")
    assert chat.conversation.deeds == []


async def test_in_a_group_the_asker_or_an_owner_presses(chat: Chat) -> None:
    """A question is for whoever asked."""
    await chat.says("/delete ab-2", by=GUEST, group=True)
    button = chat.conversation.buttons[0]
    other = type(GUEST)(id="telegram:3", name="Carl")
    assert "Only whoever asked" in await chat.presses(button, by=other, group=True)
    assert chat.conversation.deeds == []

    await chat.presses(button, by=GUEST, group=True)
    await chat.presses(button, by=OWNER, group=True)
    assert chat.conversation.deeds == [("delete", "ab-2")] * 2


async def test_a_session_is_named(chat: Chat) -> None:
    """On one line, of bounded length."""
    await chat.says("/name Trip\nto   Rome")
    await chat.says("/name " + "x" * 500)
    assert chat.conversation.deeds[0] == ("name", "Trip to Rome")
    assert len(chat.conversation.deeds[1][1]) == 100

    assert "What should it be called?" in await chat.says("/name")
    chat.conversation.sessions, chat.conversation.now = [], NotedStatus()
    assert "no session yet" in await chat.says("/name x")
