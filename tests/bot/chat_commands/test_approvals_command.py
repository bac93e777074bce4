"""/approvals: what may run here without being asked about."""

import pytest

from features.approvals import Approvals, Grant
from tests.bot.chat_commands.conftest import GUEST, Chat


@pytest.fixture
async def granted(chat: Chat) -> Approvals:
    """A chat in which something was allowed for good."""
    desk = chat.services.approvals
    for grant in (Grant(tool="bash", argv=("git", "push", "my branch")), Grant(tool="write", argv=None)):
        await desk._grants.add("telegram:1", grant, chat.clock.now())
    return desk


async def test_it_says_what_is_asked_about_and_what_is_not(chat: Chat, granted: Approvals) -> None:
    """The host's patterns and the chat's own; an owner gets buttons to take them back."""
    said = await chat.says("/approvals")

    assert "I ask before I use `bash`." in said
    assert "Never used here: `write`." in said
    assert "never ask: `git status`." in said
    assert "`git push 'my branch'`" in said
    assert "every call of `write`" in said
    assert set(chat.buttons) == {"Remove: git push 'my branch'", "Remove: write"}


async def test_an_owner_takes_back_one_or_all(chat: Chat, granted: Approvals) -> None:
    """By button; one that was taken back before changes nothing else."""
    await chat.says("/approvals")
    command = chat.buttons["Remove: git push 'my branch'"]
    assert (await chat.says(command)).startswith("Taken back")
    assert (await chat.says(command)).startswith("That was not allowed any more")
    assert [grant.tool for grant in await granted.granted(chat.conversation.place)] == ["write"]

    await chat.says("/approvals clear")
    assert "Nothing else was allowed for good" in await chat.says("/approvals")


async def test_others_may_look_and_not_change(chat: Chat, granted: Approvals) -> None:
    """Owners alone change approvals."""
    assert "every call of `write`" in await chat.says("/approvals", by=GUEST)
    assert chat.buttons == {}
    for change in ("clear", f"remove {Grant(tool='write', argv=None).id}"):
        assert "Only an owner" in await chat.says(f"/approvals {change}", by=GUEST)
    assert len(await granted.granted(chat.conversation.place)) == 2


async def test_what_it_does_not_understand_it_says(chat: Chat) -> None:
    assert "neither `remove ID` nor `clear`" in await chat.says("/approvals allow ls")
    assert "Which one?" in await chat.says("/approvals remove")
