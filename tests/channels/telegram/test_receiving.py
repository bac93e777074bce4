"""Messages on their way in."""

from datetime import UTC, datetime

from channels.telegram import TelegramChannel
from features.contracts.chat import Address
from tests.channels.telegram.rig import CHAT, GROUP, Sink
from tests.servers.telegram import FileIn, TelegramServer, User

BOT = "@pumice_bot"


async def test_a_private_message_arrives_whole(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """Everything the host decides by: who, where, when, and which message it was."""
    message_id = telegram.say(CHAT, "hello 👋", user=User(1001, "Ann"), date=1_700_000_000)
    (message,) = await sink.received(1)

    assert message.address == Address("telegram", "1001")
    assert (message.sender.id, message.sender.name, message.sender.anonymous) == ("telegram:1001", "Ann", False)
    assert (message.text, message.kind, message.ref) == ("hello 👋", "message", str(message_id))
    assert message.sent_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert (message.group, message.addressed) == (False, True)


async def test_keys_are_unique_per_bot_and_update(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """Another bot's updates may have the same numbers."""
    telegram.say(CHAT, "one")
    telegram.say(CHAT, "two")
    first, second = await sink.received(2)

    assert first.key == "4242:1000"
    assert second.key == "4242:1001"


async def test_a_group_message_is_addressed_only_when_the_bot_is_meant(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User
) -> None:
    """A mention is found by UTF-16 offsets, so emoji before it do not matter; other people's talk is not ours."""
    talk = ("just talk", f"👩‍👩‍👧‍👦🎉 hi {BOT} there", "hi @someone_else", f"{BOT.upper()} hi")
    commands = ("/status", f"/status{BOT}", "/status@other_bot", "see /status")
    for text in talk + commands:
        telegram.say(GROUP, text, user=ann)
    messages = await sink.received(8)

    assert [message.addressed for message in messages] == [False, True, False, True, True, True, False, False]
    assert all(message.group for message in messages)


async def test_a_caption_mentions_too(telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User) -> None:
    """The entities of a caption are other ones than those of a text."""
    caption = f"😀 {BOT} what is this?"
    entities = [{"type": "mention", "offset": 3, "length": len(BOT)}]
    telegram.say(GROUP, "", user=ann, file=FileIn(kind="photo"), caption=caption, caption_entities=entities)
    (message,) = await sink.received(1)

    assert message.addressed
    assert message.text == caption


async def test_a_mention_outside_the_text_is_ignored(telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User) -> None:
    """Bad ranges come from bridges and must not cost the message."""
    bad = [{"type": "mention", "offset": offset, "length": length} for offset, length in ((90, 5), (0, 99), (-3, 2), (1, 1))]
    telegram.say(GROUP, "😀 hello", user=ann, entities=bad)
    (message,) = await sink.received(1)

    assert not message.addressed


async def test_an_answer_to_the_bot_is_addressed(telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User) -> None:
    """Replying is the usual way to talk to a bot in a group."""
    ours = telegram.world.bot.json()
    chat = telegram.world.chat_json(GROUP)
    telegram.say(GROUP, "and?", user=ann, reply_to_message={"message_id": 5, "date": 1, "chat": chat, "from": ours, "text": "well"})
    theirs = {"message_id": 6, "date": 1, "chat": chat, "from": User(5, "Bob").json(), "text": "well"}
    telegram.say(GROUP, "and?", user=ann, reply_to_message=theirs)
    opened = {"message_id": 7, "date": 1, "chat": chat, "from": ours, "forum_topic_created": {"name": "T", "icon_color": 1}}
    telegram.say(GROUP, "in a topic the bot opened", user=ann, reply_to_message=opened)
    messages = await sink.received(3)

    assert [message.addressed for message in messages] == [True, False, False]
    assert [message.text for message in messages] == ["[In reply to you: well]\nand?", "[In reply to Bob: well]\nand?", messages[2].text]
    assert messages[2].text == "in a topic the bot opened"


async def test_what_is_quoted_is_told_and_a_command_stays_one(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User
) -> None:
    """The model may never have seen what somebody points at."""
    long = telegram.say(CHAT, "word " * 200)
    telegram.say(CHAT, "this part", reply_to=long, quote={"text": "just\nthis", "position": 3})
    telegram.say(CHAT, "all of it?", reply_to=long)
    telegram.say(CHAT, "/stop", reply_to=long)
    texts = [message.text for message in await sink.received(4)][1:]

    assert texts[0].startswith("[In reply to ")
    assert texts[0].endswith(": just this]\nthis part")
    assert texts[1].endswith("…]\nall of it?")
    assert len(texts[1]) < 400
    assert texts[2] == "/stop"


async def test_a_thread_is_a_topic_only_where_the_message_says_so(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User
) -> None:
    """Reply chains in ordinary groups carry a thread id as well."""
    telegram.say(GROUP, "in a topic", user=ann, thread=42)
    telegram.say(GROUP, "in a chain of replies", user=ann, message_thread_id=43)
    telegram.say(GROUP, "in general", user=ann)
    messages = await sink.received(3)

    assert [str(message.address) for message in messages] == ["telegram:-2002/42", "telegram:-2002", "telegram:-2002"]


async def test_an_edit_is_a_new_text_for_the_same_message(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """Changes of anything but the text are no news."""
    message_id = telegram.say(CHAT, "helo")
    telegram.edit(CHAT, message_id, "hello")
    shown = telegram.world.message_json(telegram.world.messages[CHAT][message_id], User(CHAT))
    moved = {key: value for key, value in shown.items() if key != "text"} | {"location": {"latitude": 1.0, "longitude": 2.0}}
    telegram.push({"edited_message": moved})
    telegram.say(CHAT, "next")
    _, edit, following = await sink.received(3)

    assert (edit.kind, edit.ref, edit.text) == ("edit", str(message_id), "hello")
    assert following.text == "next"


async def test_whoever_hides_behind_a_chat_is_anonymous(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """Anonymous admins and channels are never admitted, whatever their number."""
    hidden = User(1087968824, "Group", "GroupAnonymousBot", is_bot=True)
    telegram.say(GROUP, "as the group", user=hidden, sender_chat=telegram.world.chat_json(GROUP))
    channel_chat = {"id": -100, "type": "channel", "title": "News"}
    telegram.say(GROUP, "as a channel", user=User(136817688, "Channel", is_bot=True), sender_chat=channel_chat)
    messages = await sink.received(2)

    assert [(message.sender.id, message.sender.anonymous) for message in messages] == [("telegram:-2002", True), ("telegram:-100", True)]


async def test_bots_and_notices_are_ignored_and_still_acknowledged(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User
) -> None:
    """Two bots would talk for ever; a member who joined said nothing. Neither may come again."""
    telegram.say(GROUP, "beep", user=User(9, "Robot", is_bot=True))
    telegram.say(GROUP, "", user=ann, new_chat_members=[User(8, "Eve").json()])
    await sink.advanced_to(1002)
    await telegram.until(lambda: telegram.waiting == 0)

    assert sink.messages == []


async def test_a_group_that_becomes_a_supergroup_is_told_before_what_is_said_there(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, ann: User
) -> None:
    """What is said in the new group is to be heard as said in the old."""
    sink.broken = OSError("the disk is full")
    telegram.upgrade(GROUP, -100123, user=ann)
    telegram.say(-100123, "@pumice_bot hello", user=ann)
    await telegram.until(lambda: telegram.called("getUpdates"))
    sink.broken = None
    [message] = await sink.received(1)

    assert sink.moves == [(f"telegram:{GROUP}", "telegram:-100123")] * 2
    assert str(message.address) == "telegram:-100123"
    await telegram.until(lambda: telegram.waiting == 0)


async def test_files_come_with_their_facts(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """The best size of a photo, and a name for everything."""
    telegram.say(CHAT, "a paper", file=FileIn("../../x\x00.pdf", b"12345", mime_type="application/pdf"))
    for kind in ("photo", "voice", "audio", "video", "animation"):
        telegram.say(CHAT, file=FileIn("song.mp3", b"123456789012", kind=kind))
    messages = await sink.received(6)
    files = [message.attachments[0] for message in messages]

    assert [file.kind for file in files] == ["file", "image", "voice", "audio", "video", "video"]
    assert [len(message.attachments) for message in messages] == [1] * 6
    assert (files[0].name, files[0].size, files[0].mime_type) == ("x.pdf", 5, "application/pdf")
    assert messages[0].text == "a paper"
    assert files[1].size == 12
    assert files[2].name.endswith(".ogg")
    assert all(file.problem is None for file in files)


async def test_a_file_too_large_to_fetch_says_so_and_holds_up_nobody(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel
) -> None:
    """25 MB: the person and the model are told the size and the limit; the update is acknowledged."""
    telegram.say(CHAT, "look", file=FileIn("film.bin", b"x", size=25 * 1024 * 1024))
    telegram.say(CHAT, "next")
    first, second = await sink.received(2)

    assert first.attachments[0].problem == "film.bin has 25 MB; bots can fetch files of at most 20 MB from Telegram."
    assert second.text == "next"


async def test_an_album_is_known_by_its_group(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """Each picture is an update of its own; every caption counts."""
    for number in range(3):
        telegram.say(CHAT, f"picture {number}", file=FileIn(kind="photo"), album="g1")
    messages = await sink.received(3)

    assert {message.album for message in messages} == {"g1"}
    assert [message.text for message in messages] == ["picture 0", "picture 1", "picture 2"]


async def test_what_is_neither_text_nor_file_is_described(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """Better a line in brackets than silence."""
    place = {"latitude": 48.2, "longitude": 16.4}
    telegram.say(CHAT, location=place)
    telegram.say(CHAT, venue={"location": place, "title": "Cafe", "address": "Ring 1"}, location=place)
    telegram.say(CHAT, contact={"phone_number": "+431", "first_name": "Bob"})
    sticker = {"file_id": "s", "file_unique_id": "s", "width": 1, "height": 1, "type": "regular"}
    telegram.say(CHAT, sticker={**sticker, "is_animated": False, "is_video": False, "emoji": "🎉"})
    telegram.say(CHAT, dice={"emoji": "🎲", "value": 4})
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Old Friend"}
    telegram.say(CHAT, "their words", forward_origin=origin)
    telegram.say(CHAT, story={"chat": {"id": 5, "type": "private"}, "id": 1})
    messages = await sink.received(7)

    assert [message.text for message in messages] == [
        "[Location: 48.2, 16.4]",
        "[Place: Cafe, Ring 1 (48.2, 16.4)]",
        "[Contact: Bob, +431]",
        "[Sticker 🎉]",
        "[Dice 🎲: 4]",
        "[Forwarded from Old Friend]\ntheir words",
        "[Sent a story, which cannot be read here]",
    ]
