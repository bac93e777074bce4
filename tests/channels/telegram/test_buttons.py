"""Buttons and the menu."""

import pytest

from channels.telegram import TelegramChannel
from channels.telegram.buttons import ButtonCodec
from features.contracts.chat import Button, ChatCommand
from tests.channels.telegram.rig import CHAT, GROUP, HERE, Sink, channel_of, running, send
from tests.servers.telegram import Fault, TelegramServer, User

LONG_ID = "openai-compatible/" + "x" * 60


async def test_pressing_a_button_is_typing_its_command(telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User) -> None:
    """By whoever pressed, in the chat where the button stands; and its spinner stops."""
    rows = ((Button(label="low", command="/thinking low"), Button(label="high", command="/thinking high")),)
    await send(listening, "How hard?", buttons=rows)
    (shown,) = telegram.messages(CHAT)
    press = telegram.press(CHAT, shown.id, "high", user=ann)
    (message,) = await sink.received(1)
    await telegram.until(lambda: telegram.called("answerCallbackQuery"))

    assert (message.kind, message.text, message.ref) == ("press", "/thinking high", str(shown.id))
    assert (message.address, message.sender.id, message.addressed) == (HERE, "telegram:77", True)
    assert telegram.world.presses[press] == ""


async def test_a_press_in_a_topic_belongs_to_the_topic(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """A topic is a conversation of its own."""
    telegram.say(GROUP, "hi", thread=42)
    (first,) = await sink.received(1)
    await send(listening, "Which?", to=first.address, buttons=((Button(label="a", command="/a"),),))
    telegram.press(GROUP, telegram.messages(GROUP)[0].id, "a")
    _, press = await sink.received(2)

    assert (str(press.address), press.group) == ("telegram:-2002/42", True)


async def test_a_long_command_survives_a_restart_when_it_holds_its_label(telegram: TelegramServer, sink: Sink) -> None:
    """Telegram keeps 64 bytes; a model's name can be longer, and it is what the button says."""
    command = f"/model {LONG_ID}"
    await send(channel_of(telegram), "Which?", buttons=((Button(label=LONG_ID, command=command),),))
    async with running(channel_of(telegram), sink):
        telegram.press(CHAT, telegram.messages(CHAT)[0].id, LONG_ID)
        (message,) = await sink.received(1)

    assert message.text == command


async def test_a_press_whose_command_is_known_no_more_says_so(telegram: TelegramServer, sink: Sink) -> None:
    """Not a spinner that turns for ever."""
    await send(channel_of(telegram), "Which?", buttons=((Button(label="this one", command=f"/model {LONG_ID}"),),))
    async with running(channel_of(telegram), sink):
        press = telegram.press(CHAT, telegram.messages(CHAT)[0].id, "this one")
        await telegram.until(lambda: telegram.called("answerCallbackQuery"))

    assert "too old" in (telegram.world.presses[press] or "")
    assert sink.messages == []


@pytest.mark.parametrize("command", ["/x", "=H:looks like a key", "/resume " + "🦊" * 20, "/say {} " + "y" * 80, "/" + "z" * 200])
def test_every_command_comes_back_as_it_was(command: str) -> None:
    """Whatever it holds, and within what Telegram takes."""
    codec = ButtonCodec()
    (((label, data),),) = codec.keyboard([[Button(label="y" * 40, command=command)]])

    assert 1 <= len(data.encode()) <= 64
    assert codec.command(data, label) == command


def test_remembered_commands_are_bounded() -> None:
    """A host runs for months."""
    codec = ButtonCodec()
    keyboards = [codec.keyboard([[Button(label="go", command=f"/{'x' * 80} {number}")]]) for number in range(2500)]

    assert codec.command(keyboards[0][0][0][1], "go") is None
    assert codec.command(keyboards[-1][0][0][1], "go") == f"/{'x' * 80} 2499"


async def test_the_menu_shows_the_commands_that_fit(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """One command that Telegram cannot show must not cost the others."""
    commands = [ChatCommand(name="new", description="a fresh session"), ChatCommand(name="Bad-Name", description="x")]
    await channel.announce_commands([*commands, ChatCommand(name="long", description="d" * 300)])

    assert [each["command"] for each in telegram._methods.commands] == ["new", "long"]


async def test_a_menu_that_could_not_be_set_is_set_when_telegram_is_back(telegram: TelegramServer, sink: Sink) -> None:
    """It is announced once, at start, when the network may not be there yet."""
    telegram.fail("setMyCommands", Fault(code=500, description="Internal Server Error"))
    channel = channel_of(telegram)
    await channel.announce_commands([ChatCommand(name="new", description="a fresh session")])
    async with running(channel, sink):
        await telegram.until(lambda: telegram._methods.commands)

    assert telegram._methods.commands == [{"command": "new", "description": "a fresh session"}]


async def test_buttons_are_taken_off_and_the_message_says_how_it_ended(telegram: TelegramServer) -> None:
    """Telegram was away for a moment; a text in several messages keeps its words, and how it ended has to be said."""
    channel, rows = channel_of(telegram), ((Button(label="yes", command="/answer 1 1"),),)
    progress = await send(channel, "Shall **I**?", buttons=rows)
    telegram.fail("editMessageText", Fault(code=502, description="Bad Gateway"))
    assert await channel.close_buttons(HERE, progress.refs[-1], "Shall **I**?\n\nAnswered: no")
    (shown,) = telegram.messages(CHAT)
    assert (shown.text, shown.styled("bold"), shown.buttons) == ("Shall I?\n\nAnswered: no", ["I"], [])
    assert await channel.close_buttons(HERE, progress.refs[-1], "Shall **I**?\n\nAnswered: no"), "it reads so already"

    text = "word " * 2000
    progress = await send(channel, text, buttons=rows)
    assert not await channel.close_buttons(HERE, progress.refs[-1], f"{text}\n\nAnswered: no")
    assert telegram.messages(CHAT)[-1].buttons == []


async def test_what_cannot_be_edited_is_told_apart(telegram: TelegramServer) -> None:
    """It then has to be said; a message that is gone needs nothing."""
    channel = channel_of(telegram)
    progress = await send(channel, "Shall I?", buttons=((Button(label="yes", command="/answer 1 1"),),))
    telegram.fail("editMessageText", Fault(code=403, description="Forbidden: bot was blocked by the user"))
    assert not await channel.close_buttons(HERE, progress.refs[-1], "over")
    telegram.fail("editMessageText", Fault(code=400, description="Bad Request: message to edit not found"))
    assert await channel.close_buttons(HERE, progress.refs[-1], "over")
    assert not await channel.close_buttons(HERE, None, "over")
