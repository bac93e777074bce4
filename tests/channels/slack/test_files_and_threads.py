"""What the channel looks up: files that people sent, and what was said in a thread before."""

from pathlib import Path

import pytest

from channels.slack import SlackChannel
from features.contracts.chat import Attachment
from features.contracts.errors import RetryLater, UserMustAct
from tests.channels.slack.rig import DIRECT, DM, ROOM, Sink, send, thread_of
from tests.servers.slack import Fault, SlackServer
from tests.servers.slack_world import BOT_TOKEN


async def attached(slack: SlackServer, sink: Sink, *, name: str = "a.bin", kind: str = "application/pdf") -> Attachment:
    slack.say(DM, files=((name, kind, b"content"),))
    return (await sink.received(1))[0].attachments[0]


async def test_a_file_is_fetched_with_the_token(slack: SlackServer, sink: Sink, listening: SlackChannel, tmp_path: Path) -> None:
    """Whole, and under no other name meanwhile."""
    await listening.fetch(await attached(slack, sink), tmp_path / "a", limit=100)

    assert (tmp_path / "a").read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert slack.called("download")[0].values == {"authorization": f"Bearer {BOT_TOKEN}"}


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault(error="redirect http://127.0.0.1:9/x"), UserMustAct, "not Slack's"),
        (Fault(error="redirect /files/F1/x"), UserMustAct, "from one address to the next"),
        (Fault(error="login"), UserMustAct, "files:read"),
        (Fault(error="gone", status=404), UserMustAct, "send it again"),
        (Fault(error="busy", status=503), RetryLater, "503"),
    ],
)
async def test_the_token_goes_to_slack_alone_and_nothing_else_is_taken_for_the_file(
    slack: SlackServer, sink: Sink, listening: SlackChannel, tmp_path: Path, fault: Fault, kind: type[Exception], words: str
) -> None:
    """A redirect elsewhere, a log-in page, an error: nothing stays behind."""
    attachment = await attached(slack, sink)
    slack.fail("download", fault, times=5)
    with pytest.raises(kind, match=words):
        await listening.fetch(attachment, tmp_path / "a", limit=100)

    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_is_too_large_is_not_kept(slack: SlackServer, sink: Sink, listening: SlackChannel, tmp_path: Path) -> None:
    """Whatever Slack said of its size."""
    attachment = await attached(slack, sink)
    with pytest.raises(UserMustAct, match="at most"):
        await listening.fetch(attachment, tmp_path / "a", limit=3)

    assert list(tmp_path.iterdir()) == []


async def test_a_session_in_a_thread_begins_with_what_was_said_there(slack: SlackServer, sink: Sink, listening: SlackChannel) -> None:
    """In order, with names and files, the bot's own messages too; later only what others said since."""
    root = slack.say(ROOM, "the build fails")
    slack.say(ROOM, "since when, <@U1ANN>?", thread=root, user="U2BOB")
    await send(listening, "I can look", to=thread_of(root))
    slack.say(ROOM, "", thread=root, files=(("log.txt", "text/plain", b"x"),))
    asked = slack.say(ROOM, "<@U0BOT> look", thread=root)
    later = slack.say(ROOM, "never mind", thread=root)
    await sink.received(5)

    told = await listening.earlier(thread_of(root), before=asked, after=None, limit=10)
    assert [(each.sender.name, each.text) for each in told] == [
        ("Ann", "the build fails"),
        ("Bob", "since when, @Ann?"),
        ("you", "I can look"),
        ("Ann", "[sent: log.txt]"),
    ]
    assert [each.text for each in await listening.earlier(thread_of(root), before=asked, after=root, limit=1)] == ["[sent: log.txt]"]
    assert await listening.earlier(thread_of(root), before=later, after=asked, limit=10) == []
    assert await listening.earlier(DIRECT, before=later, after=None, limit=10) == []


async def test_a_thread_that_cannot_be_read_costs_no_answer(slack: SlackServer, sink: Sink, listening: SlackChannel) -> None:
    """The scope may be missing, or Slack away."""
    root = slack.say(ROOM, "<@U0BOT> hello")
    await sink.received(1)
    slack.fail("conversations.replies", Fault(error="missing_scope", needed="channels:history"))

    assert await listening.earlier(thread_of(root), before=root, after=None, limit=10) == []
