"""/memory."""

from features.contracts.chat import Address
from tests.bot.chat_commands.conftest import Chat

PLACE = Address("telegram", "1")


async def test_nothing_is_remembered_at_first(chat: Chat) -> None:
    """And how to change that."""
    assert "noted nothing in this chat yet" in await chat.says("/memory")
    assert "noted nothing in this chat." in await chat.says("/memory clear")


async def test_notes_are_shown_with_a_button_each(chat: Chat) -> None:
    """Pressing one forgets that note and shows the rest; a stale one does nothing."""
    memory = chat.services.memory
    for text in ("likes *tea*", "lives in Graz"):
        await memory.add(PLACE, "chat", text)
    text = await chat.says("/memory")
    assert "1. likes \\*tea\\*" in text
    assert "of 16,384 bytes" in text
    forget = chat.buttons["✕ 1. likes *tea*"]

    text = await chat.says(forget)
    assert "Forgotten: likes" in text
    assert "1. lives in Graz" in text
    assert "not there any more" in await chat.says(forget)


async def test_all_is_forgotten_after_a_question(chat: Chat) -> None:
    """It cannot be brought back."""
    await chat.services.memory.add(PLACE, "chat", "one")
    assert "Forget all 1 note in this chat?" in await chat.says("/memory clear")
    assert len((await chat.services.memory.view(PLACE, "chat")).notes) == 1

    assert "Forgotten: 1 note" in await chat.says(chat.buttons["Forget all"])
    assert (await chat.services.memory.view(PLACE, "chat")).notes == ()


async def test_what_all_chats_share_is_shown_to_owners_where_they_are_alone(chat: Chat) -> None:
    """One button away."""
    await chat.services.memory.add(PLACE, "everywhere", "for all")
    await chat.says("/memory")
    text = await chat.says(chat.buttons["All chats"])
    assert "1. for all" in text
    assert "Forgotten: for all" in await chat.says(chat.buttons["✕ 1. for all"])

    chat.conversation.address = Address("telegram", "-100")
    assert "no memory for all chats here" in await chat.says("/memory everywhere", group=True)
    await chat.says("/memory")
    assert "All chats" not in chat.buttons


async def test_a_slip_of_the_pen_is_answered_with_the_way_out(chat: Chat) -> None:
    """Not with silence."""
    assert "I do not understand" in await chat.says("/memory forgt x")


async def test_many_notes_have_their_buttons_bounded(chat: Chat) -> None:
    """A platform takes so many."""
    for number in range(70):
        await chat.services.memory.add(PLACE, "chat", f"note {number}")
    text = await chat.says("/memory")

    assert "… and 10 more" in text
    assert len(chat.conversation.buttons) <= 14
