"""Texts on their way out."""

import pytest

from channels.telegram import TelegramChannel
from features.contracts.chat import Address, Button, DeliveryRefused, DeliveryUncertain, PlaceMoved
from features.contracts.errors import RetryLater
from tests.channels.telegram.rig import CHAT, GROUP, HERE, Progress, Sink, channel_of, running, send
from tests.servers.telegram import Fault, TelegramServer

BAD_ENTITIES = Fault(code=400, description="Bad Request: can't parse entities: whatever")
BUTTONS = ((Button(label="ok", command="/ok"),),)


def paragraphs(count: int, chars: int = 1000) -> str:
    return "\n\n".join(f"{number} " + "word " * (chars // 5) for number in range(count))


async def test_markdown_arrives_as_formatted_text(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """Entities, never parse_mode."""
    progress = await send(channel, "Hello **world**, see `x_y` 🎉 *now*", reply_to=None)
    (shown,) = telegram.messages(CHAT)

    assert shown.text == "Hello world, see x_y 🎉 now"
    assert (shown.styled("bold"), shown.styled("code"), shown.styled("italic")) == (["world"], ["x_y"], ["now"])
    assert (progress.refs, progress.finished) == ([str(shown.id)], True)


async def test_a_long_text_arrives_in_valid_parts_with_buttons_under_the_last(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """And only the first answers the question."""
    asked = telegram.say(CHAT, "tell me")
    text = paragraphs(10)
    progress = await send(channel, text, buttons=BUTTONS, reply_to=str(asked))
    shown = telegram.messages(CHAT)

    assert len(shown) == 3
    assert "".join("".join(each.text for each in shown).split()) == "".join(text.split())
    assert [bool(each.buttons) for each in shown] == [False, False, True]
    assert [each.reply_to for each in shown] == [asked, None, None]
    assert progress.refs == [str(each.id) for each in shown]


async def test_an_answer_to_a_deleted_message_still_arrives(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """People delete their questions."""
    await send(channel, "the answer", reply_to="999")

    assert telegram.texts(CHAT) == ["the answer"]


async def test_what_was_confirmed_before_is_not_sent_again(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """The host died after two of three parts."""
    text = paragraphs(10)
    await send(channel, text)
    whole = telegram.texts(CHAT)
    progress = await send(channel, text, progress=Progress(done=2))

    assert telegram.texts(CHAT)[3:] == whole[2:]
    assert len(progress.refs) == 1


async def test_nothing_is_called_when_everything_was_confirmed(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """The host died between the last confirmation and its note of it."""
    await send(channel, "short", progress=Progress(done=1))

    assert telegram.calls == []


async def test_a_possible_duplicate_is_marked(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """At the first part that may be there already, and at no other."""
    await send(channel, paragraphs(10), possible_duplicate=True, progress=Progress(done=1))
    second, third = telegram.messages(CHAT)

    assert second.text.startswith("The connection broke")
    assert second.styled("italic") == [second.text.partition("\n")[0]]
    assert "The connection broke" not in third.text


async def test_the_mark_stands_alone_where_there_is_no_room(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """The parts are cut as they were cut before."""
    await send(channel, "x" * 4096, possible_duplicate=True)
    mark, text = telegram.messages(CHAT)

    assert "may have this already" in mark.text
    assert text.text == "x" * 4096


async def test_the_draft_becomes_the_answer(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """The answer stands where it was seen growing; doing that twice changes nothing, so it needs no mark."""
    first = await send(channel, "Hel")
    progress = await send(channel, paragraphs(6), buttons=BUTTONS, progress=Progress(draft=first.refs[0]), possible_duplicate=True)
    shown = telegram.messages(CHAT)

    assert len(shown) == 2
    assert shown[0].text.startswith("0 word")
    assert progress.refs == [str(each.id) for each in shown]
    assert [bool(each.buttons) for each in shown] == [False, True]


async def test_a_draft_that_already_shows_the_answer_is_success(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """Telegram calls it an error."""
    first = await send(channel, "Hello")
    progress = await send(channel, "Hello", progress=Progress(draft=first.refs[0]))

    assert progress.refs == first.refs
    assert telegram.texts(CHAT) == ["Hello"]


async def test_a_draft_that_is_gone_gives_a_new_message(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """The person deleted it."""
    await send(channel, "Hello", progress=Progress(draft="555"))

    assert telegram.texts(CHAT) == ["Hello"]


async def test_a_refused_formatting_gives_the_original_text_once(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """As it was written, with no escapes added."""
    telegram.fail("sendMessage", BAD_ENTITIES)
    await send(channel, "a **bold** claim_1 \\*", buttons=BUTTONS)
    (shown,) = telegram.messages(CHAT)

    assert shown.text == "a **bold** claim_1 \\*"
    assert shown.entities == []
    assert shown.buttons


async def test_a_refused_long_text_is_plain_and_whole(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """The plain text is cut as well, and everything of it counts as delivered."""
    telegram.fail("sendMessage", BAD_ENTITIES)
    text = "**start**\n\n" + paragraphs(10)
    progress = await send(channel, text)

    assert "".join("".join(telegram.texts(CHAT)).split()) == "".join(text.split())
    assert progress.done == 3


async def test_a_text_refused_twice_is_given_up(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """The same illegal message must not be tried for ever."""
    telegram.fail("sendMessage", BAD_ENTITIES, times=2)
    with pytest.raises(DeliveryRefused):
        await send(channel, "a **bold** claim")

    assert len(telegram.called("sendMessage")) == 2


@pytest.mark.parametrize(
    ("code", "description", "words"),
    [
        (403, "Forbidden: bot was blocked by the user", "has blocked the bot"),
        (403, "Forbidden: bot was kicked from the supergroup chat", "removed from this group"),
        (400, "Bad Request: chat not found", "does not know this chat"),
        (400, "Bad Request: not enough rights to send text messages to the chat", "may not write"),
        (400, "Bad Request: something new", "Something new"),
    ],
)
async def test_what_telegram_never_takes_is_refused_in_plain_words(
    code: int, description: str, words: str, telegram: TelegramServer, channel: TelegramChannel
) -> None:
    """So that the outbox goes on with the next message."""
    telegram.fail("sendMessage", Fault(code=code, description=description))
    with pytest.raises(DeliveryRefused, match=words):
        await send(channel, "hello")

    assert len(telegram.called("sendMessage")) == 1


async def test_a_group_that_became_a_supergroup_names_its_new_id(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """So that what was to be sent there follows it."""
    telegram.world.messages[CHAT] = {}
    telegram.upgrade(CHAT, -1009, told=False)
    with pytest.raises(PlaceMoved) as moved:
        await send(channel, "hello")

    assert moved.value.new == Address("telegram", "-1009")


async def test_a_connection_that_breaks_after_the_request_leaves_it_open(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """It may have arrived, so whoever sends it again has to say so."""
    telegram.fail("sendMessage", Fault(drop="after"))
    with pytest.raises(DeliveryUncertain):
        await send(channel, "hello")

    assert telegram.texts(CHAT) == ["hello"]


async def test_a_server_that_cannot_be_reached_took_nothing(sink: Sink) -> None:
    """So nothing has to be marked when it is tried again; and the token is not in the text."""
    from tests.servers.telegram import TelegramServer as Unserved

    away = Unserved()
    away.url = "http://127.0.0.1:9"
    with pytest.raises(RetryLater) as raised:
        await send(channel_of(away), "hello")

    assert not isinstance(raised.value, DeliveryUncertain)
    assert away.token not in str(raised.value)


async def test_a_short_pause_is_waited_out(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """Once, as long as Telegram says."""
    telegram.fail("sendMessage", Fault(code=429, description="Too Many Requests: retry after 1", parameters={"retry_after": 1}))
    await send(channel, "hello")
    refused, taken = telegram.called("sendMessage")

    assert taken.at - refused.at >= 1
    assert telegram.texts(CHAT) == ["hello"]


async def test_a_long_pause_is_handed_to_the_outbox_and_holds_up_no_other_chat(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """Nothing more goes to the chat before it is over."""
    telegram.fail("sendMessage", Fault(code=429, description="Too Many Requests", parameters={"retry_after": 300}, chat=CHAT))
    for _ in range(2):
        with pytest.raises(RetryLater) as raised:
            await send(channel, "hello")
        assert raised.value.after is not None
        assert 290 < raised.value.after.total_seconds() <= 300
    await send(channel, "hello", to=Address("telegram", str(GROUP)))

    assert len(telegram.called("sendMessage", chat=CHAT)) == 1
    assert telegram.texts(GROUP) == ["hello"]


async def test_general_is_sent_to_without_a_topic(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """Telegram refuses its number, though it gives it."""
    telegram.say(GROUP, "hi", thread=42)
    await send(channel, "to general", to=Address("telegram", str(GROUP), "1"))
    await send(channel, "to the topic", to=Address("telegram", str(GROUP), "42"))

    assert [(each.text, each.thread) for each in telegram.messages(GROUP)] == [("to general", None), ("to the topic", 42)]


async def test_an_answer_for_a_deleted_topic_arrives_in_the_chat(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """And the person is told why it is there."""
    await send(channel, paragraphs(6), to=Address("telegram", str(GROUP), "99"))
    note, *parts = telegram.texts(GROUP)

    assert "topic" in note
    assert len(parts) == 2
    assert len(telegram.called("sendMessage")) == 4


async def test_html_and_broken_characters_arrive_as_text(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """Nothing of what a model writes may be lost or refused."""
    await send(channel, "List<int> & <think>x</think> <!here> \x00\x07\ud83d end")

    assert telegram.texts(CHAT) == ["List<int> & <think>x</think> <!here> \ufffd end"]


async def test_an_empty_text_is_no_call(telegram: TelegramServer, channel: TelegramChannel) -> None:
    """Telegram refuses it; the outbox may go on."""
    await send(channel, " \n\x00 ")

    assert telegram.calls == []


async def test_what_is_sent_after_the_channel_stopped_still_arrives(telegram: TelegramServer, sink: Sink) -> None:
    """A host that stops empties its outbox last."""
    channel = channel_of(telegram)
    async with running(channel, sink):
        await telegram.until(lambda: channel.health().working)
    await send(channel, "bye")

    assert telegram.texts(CHAT) == ["bye"]
    assert HERE.chat == str(CHAT)
