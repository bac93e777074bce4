"""An answer while it grows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.clock import SystemClock
from channels.slack.api import SlackApi
from channels.slack.drafts import Drafts
from channels.slack.live_view import Recipient, SlackLiveView
from channels.slack.rate_gate import RateGate
from channels.slack.target import Target
from features.contracts.chat import Address
from features.contracts.testing import FakeClock
from tests.channels.rig import Sink
from tests.channels.slack.rig import CHANNEL, DIRECT, DM, ROOM, Progress, channel_of, running, send, thread_of
from tests.servers.slack import Fault, SlackServer


class Watched:
    """A view that is driven by hand."""

    def __init__(self, slack: SlackServer, address: Address, *, recipient: Recipient | None = None) -> None:
        self.slack = slack
        self.clock = FakeClock()
        self.opened: list[str] = []
        self.drafts = Drafts()
        channel = channel_of(slack)
        self.api = SlackApi(channel._options)
        self.view = SlackLiveView(
            self.api,
            RateGate(self.clock, paced=True),
            self.drafts,
            Target(address),
            recipient=recipient,
            opened=self.opened.append,
            clock=self.clock,
            error_ids=lambda: "e1",
        )

    async def after(self, seconds: float, method: str, times: int) -> None:
        """Let time pass until a method was called so often in all."""
        await self.clock.advance(seconds)
        await self.slack.until(lambda: len(self.slack.called(method)) >= times)
        await SystemClock().sleep(0.02)  # the answer's way back
        assert len(self.slack.called(method)) == times


@asynccontextmanager
async def watched(slack: SlackServer, address: Address, recipient: Recipient | None = None) -> AsyncIterator[Watched]:
    found = Watched(slack, address, recipient=recipient)
    try:
        yield found
    finally:
        await found.view.close()
        await found.api.close()


ANN = Recipient("T1", "U1ANN")


async def test_a_quick_answer_in_a_direct_message_costs_no_call(slack: SlackServer) -> None:
    """Slack has no typing indicator for bots there."""
    async with watched(slack, DIRECT) as found:
        found.view.show("Hello")
        await found.clock.advance(0.9)
        assert await found.view.close() is None

    assert slack.calls == []


async def test_a_growing_text_in_a_direct_message_is_one_message_that_is_edited(slack: SlackServer) -> None:
    """With what it is doing under it, in italics."""
    async with watched(slack, DIRECT) as found:
        found.view.show("**Because**")
        await found.after(1, "chat.postMessage", 1)
        found.view.status("bash: ls_x")
        await found.after(1.3, "chat.update", 1)
        (shown,) = slack.messages(DM)

        assert shown.text == "*Because*\n\n_bash: ls_x_"
        assert found.opened == [shown.ts]
        assert await found.view.close() == shown.ts


async def test_a_thread_is_streamed_natively_and_needs_no_edit(slack: SlackServer) -> None:
    """The status goes, the stream ends with what was missing."""
    root = slack.say(ROOM, "question")
    async with watched(slack, thread_of(root), ANN) as found:
        await found.after(0, "assistant.threads.setStatus", 1)
        assert "thinking" in slack.world.statuses[ROOM, root]
        found.view.status("bash: ls")
        await found.after(0.1, "assistant.threads.setStatus", 2)
        assert "bash: ls" in slack.world.statuses[ROOM, root]
        found.view.show("Once ")
        await found.after(1, "chat.startStream", 1)
        found.view.show("Once upon <!her")
        await found.after(1.3, "chat.appendStream", 1)
        found.view.show("Once upon <!here> a time")
        draft = await found.view.close()
        (shown,) = slack.messages(ROOM)

        assert (shown.ts, shown.streaming, shown.thread, shown.pings) == (draft, False, root, [])
        assert shown.text.replace("\u2060", "") == "Once upon <!here> a time"
        assert slack.world.statuses[ROOM, root] == ""
        assert found.drafts.shows(shown.ts, "Once upon <!here> a time")


async def test_a_streamed_answer_is_not_edited_by_its_delivery(slack: SlackServer) -> None:
    """Every call counts against the workspace's minute; one that differs is edited."""
    sink = Sink()
    async with running(channel_of(slack), sink) as channel:
        await slack.until(lambda: slack.connections)
        root = slack.say(ROOM, "<@U0BOT> question")
        await sink.received(1)
        drafts: list[str | None] = []
        for final in ("all of it", "something else"):
            view = channel.live(thread_of(root), reply_to=root, opened=lambda ref: None)
            view.show("all ")
            await slack.until(lambda: len(slack.called("chat.startStream")) > len(drafts))
            view.show("all of it")
            drafts.append(await view.close())
            await send(channel, final, to=thread_of(root), reply_to=root, progress=Progress(draft=drafts[-1]))

    assert slack.texts(ROOM) == ["all of it", "something else"]
    assert len(slack.called("chat.update")) == 1
    assert slack.called("chat.postMessage") == []


async def test_a_text_that_begins_anew_is_shown_by_edits(slack: SlackServer) -> None:
    """A stream cannot take back what it said."""
    root = slack.say(ROOM, "question")
    async with watched(slack, thread_of(root), ANN) as found:
        found.view.show("First try")
        await found.after(1, "chat.startStream", 1)
        found.view.show("Second")
        await found.after(1.3, "chat.update", 1)

    assert slack.texts(ROOM) == ["Second"]
    assert not slack.messages(ROOM)[0].streaming


async def test_a_workspace_without_streams_gets_edits(slack: SlackServer) -> None:
    """And nobody is any the wiser."""
    root = slack.say(ROOM, "question")
    slack.fail("chat.startStream", Fault(error="unknown_method"))
    async with watched(slack, thread_of(root), ANN) as found:
        found.view.show("Hello")
        await found.after(1, "chat.startStream", 1)
        await found.after(2, "chat.postMessage", 1)

    assert slack.texts(ROOM, thread=root) == ["Hello"]


async def test_previews_leave_room_for_finals(slack: SlackServer) -> None:
    """Of fifty edits a minute, the previews may have a part; without a turn they are left out."""
    async with watched(slack, DIRECT) as found:
        for number in range(60):
            found.view.show("word " * (number + 1))
            await found.clock.advance(1.3)
            await SystemClock().sleep(0.005)

    assert 5 < len(slack.called("chat.update")) < 50


async def test_a_preview_that_fails_is_given_up_quietly(slack: SlackServer) -> None:
    """The final text shows."""
    slack.fail("chat.postMessage", Fault(error="not_in_channel"))
    async with watched(slack, CHANNEL) as found:
        found.view.show("Hello")
        await found.after(1, "chat.postMessage", 1)
        found.view.show("Hello again")
        await found.clock.advance(10)
        assert await found.view.close() is None

    assert len(slack.called("chat.postMessage")) == 1
