"""Texts and files on their way out."""

from pathlib import Path

import pytest

from channels.slack import SlackChannel
from features.contracts.chat import Button, DeliveryRefused, DeliveryUncertain, OutboundFile
from features.contracts.errors import RetryLater
from tests.channels.slack.rig import CHANNEL, DIRECT, DM, ROOM, Progress, channel_of, send, thread_of
from tests.servers.slack import Fault, SlackServer

BUTTONS = ((Button(label="Go", command="/go to <@U1>"), Button(label="Stay", command="/stay")),)


async def test_markdown_is_shown_by_slacks_own_block(slack: SlackServer, channel: SlackChannel) -> None:
    """With a plain notification beside it."""
    progress = await send(channel, "Hello **world**\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    (shown,) = slack.messages(DM)

    assert shown.blocks == [{"type": "markdown", "text": "Hello **world**\n\n| a | b |\n|---|---|\n| 1 | 2 |"}]
    assert shown.text.startswith("Hello world")
    assert (progress.refs, progress.finished) == ([shown.ts], True)


async def test_nobody_is_pinged_by_what_a_model_writes(slack: SlackServer, channel: SlackChannel) -> None:
    """Nor in code, nor in parts, nor by a button."""
    text = "<!here> and <@U1ANN> `<!channel>`\n```\n<!everyone>\n```"
    await send(channel, text, buttons=((Button(label="<!here>", command="/x"),),))
    await send(channel, text + " word" * 4000)
    slack.fail("chat.postMessage", Fault(error="invalid_blocks"))
    await send(channel, text)

    assert [shown.pings for shown in slack.messages(DM)] == [[]] * len(slack.messages(DM))
    assert all("here" in shown.shown for shown in (slack.messages(DM)[0], slack.messages(DM)[-1]))


async def test_an_answer_stays_in_its_thread(slack: SlackServer, channel: SlackChannel) -> None:
    """In a direct message only where the person wrote in one."""
    root = slack.say(ROOM, "question")
    asked = slack.say(DM, "question")
    await send(channel, "in the thread", to=thread_of(root), reply_to=root)
    await send(channel, "in the channel", to=CHANNEL)
    await send(channel, "at the end")
    await send(channel, "under it", reply_to=asked)

    assert [(each.text, each.thread) for each in slack.messages(ROOM)] == [("in the thread", root), ("in the channel", None)]
    assert [(each.text, each.thread) for each in slack.messages(DM)] == [("at the end", None), ("under it", asked)]


async def test_a_long_text_arrives_in_parts_that_slack_takes(slack: SlackServer, channel: SlackChannel) -> None:
    """As mrkdwn, whole, with the buttons under the last."""
    text = "\n\n".join(f"{number} **bold** & <tag> " + "word " * 200 for number in range(20))
    progress = await send(channel, text, buttons=BUTTONS)
    shown = slack.messages(DM)

    assert len(shown) > 3
    assert all(len(each.text) <= 3900 for each in shown)
    assert "".join("".join(each.text for each in shown).split()).count("word") == 4000
    assert "*bold* &amp; &lt;tag&gt;" in shown[0].text
    assert [bool(each.buttons) for each in shown] == [*[False] * (len(shown) - 1), True]
    assert progress.refs == [each.ts for each in shown]


async def test_what_was_confirmed_before_is_not_sent_again(slack: SlackServer, channel: SlackChannel) -> None:
    """The host died after two parts."""
    text = "word " * 6000
    await send(channel, text)
    whole = slack.texts(DM)
    await send(channel, text, progress=Progress(done=2))

    assert slack.texts(DM)[len(whole) :] == whole[2:]


async def test_a_possible_duplicate_is_marked(slack: SlackServer, channel: SlackChannel) -> None:
    """In a message of its own before the rest."""
    await send(channel, "the answer", possible_duplicate=True)

    assert slack.texts(DM)[0].startswith("_The connection broke")
    assert slack.texts(DM)[1:] == ["the answer"]


async def test_the_draft_becomes_the_answer(slack: SlackServer, channel: SlackChannel) -> None:
    """Edited once; one that is gone gives a new message."""
    draft = (await send(channel, "Hel")).refs[0]
    progress = await send(channel, "Hello", progress=Progress(draft=draft), possible_duplicate=True)
    await send(channel, "again", progress=Progress(draft="1.000000"))

    assert slack.texts(DM) == ["Hello", "again"]
    assert progress.refs == [draft]


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long", "msg_too_long"])
async def test_a_refused_formatting_gives_the_original_text_once(slack: SlackServer, channel: SlackChannel, error: str) -> None:
    """As it was written; the buttons still come."""
    slack.fail("chat.postMessage", Fault(error=error))
    await send(channel, "a **bold** claim_1 \\* <b>", buttons=BUTTONS)

    assert slack.texts(DM)[0] == "a **bold** claim_1 \\* &lt;b&gt;"
    assert slack.messages(DM)[-1].buttons == ["Go", "Stay"]


async def test_a_text_refused_twice_is_given_up(slack: SlackServer, channel: SlackChannel) -> None:
    """The same illegal message must not be tried for ever."""
    slack.fail("chat.postMessage", Fault(error="invalid_blocks"), times=2)
    with pytest.raises(DeliveryRefused):
        await send(channel, "a **bold** claim")

    assert len(slack.called("chat.postMessage")) == 2


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault(error="channel_not_found"), DeliveryRefused, "does not know"),
        (Fault(error="not_in_channel"), DeliveryRefused, "/invite"),
        (Fault(error="is_archived"), DeliveryRefused, "archived"),
        (Fault(error="missing_scope", needed="chat:write"), DeliveryRefused, "chat:write"),
        (Fault(error="something_new"), DeliveryRefused, "something_new"),
        (Fault(error="invalid_auth"), RetryLater, "token"),
        (Fault(error="service_unavailable", status=503), RetryLater, "away"),
        (Fault(error="fatal_error"), DeliveryUncertain, "failed"),
        (Fault(error="", status=200, drop="before"), DeliveryUncertain, "broke"),
    ],
)
async def test_refusals_say_who_acts_next(
    slack: SlackServer, channel: SlackChannel, fault: Fault, kind: type[Exception], words: str
) -> None:
    """And are not tried again here."""
    slack.fail("chat.postMessage", fault)
    with pytest.raises(kind, match=words):
        await send(channel, "hello")

    assert len(slack.called("chat.postMessage")) == 1


async def test_a_connection_that_breaks_afterwards_leaves_it_open(slack: SlackServer, channel: SlackChannel) -> None:
    """It may have arrived, and it did."""
    slack.fail("chat.postMessage", Fault(drop="after"))
    with pytest.raises(DeliveryUncertain):
        await send(channel, "hello")

    assert slack.texts(DM) == ["hello"]


async def test_a_workspace_that_cannot_be_reached_took_nothing(slack: SlackServer) -> None:
    """So nothing is marked when it is tried again."""
    with pytest.raises(RetryLater) as raised:
        await send(channel_of(slack, api_url="http://127.0.0.1:9/api/"), "hello")

    assert not isinstance(raised.value, DeliveryUncertain)


async def test_a_short_pause_is_waited_out_and_a_long_one_handed_back(slack: SlackServer, channel: SlackChannel) -> None:
    """Other conversations go on."""
    slack.fail("chat.postMessage", Fault(retry_after=1))
    await send(channel, "hello")
    slack.fail("chat.postMessage", Fault(retry_after=300, channel=DM))
    with pytest.raises(RetryLater) as raised:
        await send(channel, "again")
    await send(channel, "elsewhere", to=CHANNEL)

    assert raised.value.after is not None
    assert raised.value.after.total_seconds() > 290
    assert (slack.texts(DM), slack.texts(ROOM)) == (["hello"], ["elsewhere"])


async def test_an_answer_for_a_thread_that_is_gone_arrives_in_the_channel(slack: SlackServer, channel: SlackChannel) -> None:
    """With a word about why."""
    await send(channel, "the answer", to=thread_of("1.000000"))

    assert "thread" in slack.texts(ROOM)[0]
    assert slack.texts(ROOM)[1] == "the answer"


async def test_buttons_carry_their_commands(slack: SlackServer, channel: SlackChannel) -> None:
    """A command that is too long is left out rather than cut."""
    await send(channel, "choose", buttons=(*BUTTONS, (Button(label="long", command="/x " + "y" * 3000),)))
    (shown,) = slack.messages(DM)

    assert shown.buttons == ["Go", "Stay"]


async def test_files_are_uploaded_into_the_thread_with_their_caption(slack: SlackServer, channel: SlackChannel, tmp_path: Path) -> None:
    """After the text."""
    root = slack.say(ROOM, "question")
    path = tmp_path / "a.txt"
    path.write_text("content")
    progress = await send(channel, "here", to=thread_of(root), files=(OutboundFile(path=path, name="a.txt", caption="**see**"),))
    text, file = slack.messages(ROOM)

    assert (text.shown, file.text, file.thread) == ("here", "*see*", root)
    assert slack.world.files[file.files[0]].content == b"content"
    assert len(progress.refs) == 2


async def test_a_file_that_cannot_be_sent_is_named_and_the_rest_arrives(slack: SlackServer, channel: SlackChannel, tmp_path: Path) -> None:
    """To the person and to the model."""
    good, empty = tmp_path / "good.txt", tmp_path / "empty.txt"
    good.write_text("x")
    empty.write_text("")
    files = (
        OutboundFile(path=empty, name="empty.txt"),
        OutboundFile(path=tmp_path / "none", name="none.txt"),
        OutboundFile(path=good, name="good.txt"),
    )
    with pytest.raises(DeliveryRefused, match=r"empty\.txt is empty.*none\.txt cannot be read"):
        await send(channel, files=files)
    slack.fail("files.completeUploadExternal", Fault(error="file_uploads_disabled"))
    with pytest.raises(DeliveryRefused, match=r"good\.txt was not sent: This workspace takes no files"):
        await send(channel, files=files[2:])

    assert len(slack.messages(DM)) == 1


async def test_an_empty_text_is_no_call(slack: SlackServer, channel: SlackChannel) -> None:
    """Slack refuses it; the outbox may go on."""
    await send(channel, " \n\x00 ")

    assert slack.calls == []


async def test_buttons_are_taken_off_and_the_message_says_how_it_ended(slack: SlackServer, channel: SlackChannel) -> None:
    """Slack was away for a moment; what has several messages ends in the last."""
    progress = await send(channel, "Shall I?", buttons=BUTTONS)
    slack.fail("chat.update", Fault(error="service_unavailable", status=503))
    assert await channel.close_buttons(DIRECT, progress.refs[-1], "Shall I?\n\nAnswered: *Go*")
    (shown,) = slack.messages(DM)
    assert (shown.blocks, shown.buttons) == ([{"type": "markdown", "text": "Shall I?\n\nAnswered: *Go*"}], [])

    text = "word " * 3000
    progress = await send(channel, text, to=CHANNEL, buttons=BUTTONS)
    assert await channel.close_buttons(CHANNEL, progress.refs[-1], f"{text}\n\nAnswered.")
    assert [bool(each.buttons) for each in slack.messages(ROOM)] == [False] * len(progress.refs)
    assert slack.texts(ROOM)[-1].endswith("Answered.")


async def test_what_cannot_be_edited_is_told_apart(slack: SlackServer, channel: SlackChannel) -> None:
    """It then has to be said; a message that somebody deleted needs nothing."""
    progress = await send(channel, "Shall I?", buttons=BUTTONS)
    slack.fail("chat.update", Fault(error="is_archived"))
    assert not await channel.close_buttons(DIRECT, progress.refs[-1], "over")
    slack.delete(DM, progress.refs[-1] or "")
    assert await channel.close_buttons(DIRECT, progress.refs[-1], "over")
    assert not await channel.close_buttons(DIRECT, None, "over")
