"""Owners admit people and groups from the chat."""

import re
from datetime import UTC, datetime

from features.contracts.chat import Address, InboundMessage, Person
from tests.bot.chat_commands.conftest import GUEST, Chat

STRANGER = Person(id="telegram:66", name="Eve")


async def a_code(chat: Chat) -> str:
    moment = datetime(2026, 1, 5, tzinfo=UTC)
    message = InboundMessage(key="1", address=Address("telegram", "66"), sender=STRANGER, text="hi", sent_at=moment)
    found = re.search(r"/pair (\w+)", str((await chat.services.access.judge(message)).reply))
    assert found
    return found[1]


async def test_an_owner_admits_by_code(chat: Chat) -> None:
    """And is told whom."""
    assert await chat.says(f"/pair {await a_code(chat)}") == "Eve (`telegram:66`) may talk to me now."
    assert chat.services.access.admits(STRANGER.id, Address("telegram", "66"), False)


async def test_a_guest_admits_nobody(chat: Chat) -> None:
    """Neither by a code, nor a group, nor sees the list; pressing a button is no other way."""
    code = await a_code(chat)
    for text, group in ((f"/pair {code}", False), ("/pair", True), ("/pair", False)):
        assert await chat.says(text, by=GUEST, group=group) == "`/pair` is for owners only."

    assert not chat.services.access.admits(STRANGER.id, Address("telegram", "66"), False)
    assert not chat.services.access.admits(STRANGER.id, chat.conversation.place, True)


async def test_a_wrong_code_is_said(chat: Chat) -> None:
    """With the way to a new one."""
    assert "unknown or has expired" in await chat.says("/pair ABCDEFGH")


async def test_an_owner_admits_a_group_in_it(chat: Chat) -> None:
    """The whole place, whatever the topic."""
    assert "everybody in this group" in await chat.says("/pair", group=True)
    assert chat.services.access.admits(STRANGER.id, Address("telegram", "1"), True)


async def test_the_list_shows_who_is_in_and_who_waits(chat: Chat) -> None:
    """Codes themselves are known to their holders alone."""
    code = await a_code(chat)
    said = await chat.says("/pair")

    assert "**Admitted:**\n- `telegram:1` (owner)" in said
    assert "**Holding a code:**\n- `telegram:66` Eve" in said
    assert code not in said
