"""What people do in Slack, as the host hears it."""

import pytest

from channels.slack import SlackChannel
from tests.channels.slack.rig import CHANNEL, DIRECT, DM, ROOM, Sink, channel_of, running, thread_of
from tests.servers.slack import SlackServer

pytestmark = pytest.mark.usefixtures("listening")


async def test_a_direct_message_is_one_session(slack: SlackServer, sink: Sink) -> None:
    """Also what is said in a thread of it; the answer then belongs there."""
    first = slack.say(DM, "hello")
    slack.say(DM, "and this", thread=first)
    one, two = await sink.received(2)

    assert [one.address, two.address] == [DIRECT, DIRECT]
    assert (one.text, one.group, one.addressed, one.under) == ("hello", False, True, None)
    assert two.under == first
    assert (one.sender.id, one.sender.name) == ("slack:T1/U1ANN", "Ann")


async def test_a_mention_begins_a_thread_and_its_replies_stay_there(slack: SlackServer, sink: Sink) -> None:
    """The thread is the address."""
    root = slack.say(ROOM, "<@U0BOT> what is this?")
    slack.say(ROOM, "<@U0BOT>, and that?", thread=root, user="U2BOB")
    one, two = await sink.received(2)

    assert [one.address, two.address] == [thread_of(root)] * 2
    assert [one.text, two.text] == ["what is this?", "and that?"]
    assert [one.addressed, one.group, two.sender.name] == [True, True, "Bob"]


@pytest.mark.parametrize("order", [("message", "app_mention"), ("app_mention", "message")])
async def test_a_mention_that_is_told_twice_is_taken_once(slack: SlackServer, sink: Sink, order: tuple[str, ...]) -> None:
    """Slack sends it as a message and as a mention, with ids of their own, in either order."""
    slack.say(ROOM, "<@U0BOT> hi", send=order)
    slack.say(DM, "after")
    await sink.received(2)

    assert [message.text for message in sink.messages] == ["hi", "after"]


async def test_the_same_message_with_another_event_id_is_the_same(slack: SlackServer, sink: Sink) -> None:
    """And a client that sends again gives its own id a second time, with another ts."""
    ts = slack.say(DM, "once")
    await sink.received(1)
    event = slack.world.message_json(DM, slack.world.conversations[DM][ts]) | {"channel": DM, "channel_type": "im"}
    slack.event(event)
    client_id = sink.messages[0].aliases[0].rpartition(":")[2]
    slack.event({**event, "ts": slack.world.next_ts(), "client_msg_id": client_id})
    slack.say(DM, "after")
    first, _ = await sink.received(2)

    assert first.aliases
    assert [message.text for message in sink.messages] == ["once", "after"]


async def test_talk_that_does_not_mean_the_bot_is_marked_so(slack: SlackServer, sink: Sink) -> None:
    """The gate decides; a reply under the bot's own message does mean it."""
    slack.say(ROOM, "lunch?")
    (talk,) = await sink.received(1)

    assert not talk.addressed

    root, ts = slack.world.next_ts(), slack.world.next_ts()
    event = {"type": "message", "channel": ROOM, "channel_type": "channel", "user": "U1ANN", "text": "thanks", "ts": ts}
    slack.event({**event, "thread_ts": root, "parent_user_id": "U0BOT"})
    await sink.received(2)

    assert sink.messages[1].addressed


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a &amp; b &lt;tag&gt; &amp;lt;", "a & b <tag> &lt;"),
        ("see <https://x.y/a|the page> and <https://x.y>", "see the page (https://x.y/a) and https://x.y"),
        ("<mailto:a@b.c|a@b.c>", "a@b.c"),
        ("ask <@U2BOB> in <#C9|general>, <!here>", "ask @Bob in #general, @here"),
        ("ask <@U9GONE>", "ask @U9GONE"),
        ("<!subteam^S1|@team> hi", "@team hi"),
        ("!new project", "/new project"),
        ("!!!", "!!!"),
        ("wow!new", "wow!new"),
        ("<@U0BOT> !stop", "/stop"),
        ("thanks <@U0BOT>", "thanks"),
    ],
)
async def test_text_reads_as_it_was_typed(slack: SlackServer, sink: Sink, written: str, read: str) -> None:
    """The model never sees Slack's control sequences, nor an escape too many or too few."""
    slack.say(DM, written)
    (message,) = await sink.received(1)

    assert message.text == read


async def test_bots_and_the_bot_itself_are_not_heard(slack: SlackServer, sink: Sink) -> None:
    """Two bots would talk for ever."""
    slack.say(DM, "from a bot", bot_id="B9", subtype="bot_message")
    slack.say(DM, "mine", user="U0BOT")
    slack.say(ROOM, "<@U0BOT> another bot", bot_id="B9")
    slack.say(DM, "joined", subtype="channel_join")
    slack.say(DM, "a person")
    await sink.received(1)
    await slack.until(lambda: not slack.unacknowledged)

    assert [message.text for message in sink.messages] == ["a person"]


async def test_edits_and_deletions_arrive_and_unfolded_links_do_not(slack: SlackServer, sink: Sink) -> None:
    """A page that Slack adds to a message is no new text."""
    ts = slack.say(DM, "https://x.y")
    slack.edit(DM, ts, "", unfurl=True)
    slack.edit(DM, ts, "https://x.z")
    slack.delete(DM, ts)
    message, edit, deletion = await sink.received(3)

    assert [each.kind for each in (message, edit, deletion)] == ["message", "edit", "deletion"]
    assert {each.ref for each in (message, edit, deletion)} == {ts}
    assert edit.text == "https://x.z"
    assert len({each.key for each in (message, edit, deletion)}) == 3


async def test_files_come_with_what_slack_says_of_them(slack: SlackServer, sink: Sink) -> None:
    """A recorded voice clip is voice, whatever its type."""
    slack.say(DM, "look", files=(("a.png", "image/png", b"x"), ("b.pdf", "application/pdf", b"y")))
    (message,) = await sink.received(1)

    assert [(file.name, file.kind, file.size) for file in message.attachments] == [("a.png", "image", 1), ("b.pdf", "file", 1)]


async def test_commands_of_the_slash_command(slack: SlackServer, sink: Sink, listening: SlackChannel) -> None:
    """One slash command for all; what is none is said to the agent."""
    from features.contracts.chat import ChatCommand

    await listening.announce_commands([ChatCommand(name="new", description="x")])
    for text in ("new project", "what is up?", ""):
        slack.command(ROOM, text)
    await sink.received(3)

    assert sorted(message.text for message in sink.messages) == ["/help", "/new project", "what is up?"]
    assert {message.address for message in sink.messages} == {CHANNEL}


async def test_what_cannot_be_stored_is_not_acknowledged_and_comes_again(slack: SlackServer, sink: Sink) -> None:
    """Slack keeps it."""
    sink.broken = OSError("disk full")
    slack.say(DM, "important")
    await slack.until(lambda: slack.unacknowledged)
    sink.broken = None
    slack.redeliver()
    (message,) = await sink.received(1)
    await slack.until(lambda: not slack.unacknowledged)

    assert message.text == "important"


async def test_an_event_that_nobody_understands_holds_nothing_up(slack: SlackServer, sink: Sink) -> None:
    """It would come again for ever."""
    slack.event({"type": "message", "channel": DM, "user": "U1ANN", "text": "x", "ts": "not a time"})
    slack.event({"type": "reaction_added", "user": "U1ANN"})
    slack.say(DM, "after")
    await sink.received(1)
    await slack.until(lambda: not slack.unacknowledged)

    assert [message.text for message in sink.messages] == ["after"]


async def test_a_burst_is_acknowledged_in_order_and_in_time(slack: SlackServer, sink: Sink) -> None:
    """Slack sends again what is not acknowledged within three seconds."""
    for number in range(300):
        slack.say(f"D{number % 30}", f"{number}")
    await sink.received(300)
    await slack.until(lambda: not slack.unacknowledged)

    assert max(slack.acknowledged_after) < 3
    for chat in range(30):
        own = [int(message.text) for message in sink.messages if message.address.chat == f"T1/D{chat}"]
        assert own == sorted(own)


async def test_events_over_http_are_verified_and_answered_when_stored(slack: SlackServer, sink: Sink) -> None:
    """A wrong signature, an old one, and one that cannot be stored."""
    channel = channel_of(slack, mode="http")
    async with running(channel, sink):
        await slack.until(lambda: len(slack.called("auth.test")) >= 2)
        body = '{"type": "url_verification", "challenge": "abc", "token": "x"}'
        assert channel.webhook_path == "/slack/events"
        assert (await channel.webhook(body.encode(), {})).status == 401
        assert (await channel.webhook(b"\xff", {})).status == 400
