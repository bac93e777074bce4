"""An answer while it grows."""

import asyncio
from random import Random

import pytest

from bot.clock import SystemClock
from channels.telegram import TelegramOptions
from channels.telegram.api import TelegramApi
from channels.telegram.flood_gate import FloodGate
from channels.telegram.live_view import TelegramLiveView
from channels.telegram.previews import DraftSupport
from features.contracts.chat import Address
from features.contracts.testing import FakeClock
from tests.channels.telegram.rig import CHAT, GROUP, HERE, Progress, channel_of, send
from tests.servers.telegram import Fault, TelegramServer

GROUP_HERE = Address("telegram", str(GROUP))


class Watched:
    """A view that is driven by hand."""

    def __init__(self, telegram: TelegramServer, address: Address = HERE, *, reply_to: str | None = None, drafts: bool = False) -> None:
        self.telegram = telegram
        self.clock = FakeClock()
        self.opened: list[str] = []
        self.gate = FloodGate(self.clock, per_second=30)
        api = TelegramApi(TelegramOptions(telegram.token, telegram.url))
        self.support = DraftSupport()
        self.support.works = drafts
        self.chores: list[asyncio.Task[None]] = []
        self.view = TelegramLiveView(
            api, self.gate, address, reply_to=reply_to, opened=self.opened.append, drafts=self.support,
            chore=lambda work: self.chores.append(asyncio.ensure_future(work)), clock=self.clock, random=Random(1),
        )  # fmt: skip

    async def after(self, seconds: float, calls: int) -> None:
        """Let time pass until so many calls were made in all."""
        await self.clock.advance(seconds)
        await self.telegram.until(lambda: len(self.telegram.calls) >= calls)
        await SystemClock().sleep(0.02)  # the answer's way back
        assert len(self.telegram.calls) == calls


async def test_a_quick_answer_costs_one_typing_indicator(telegram: TelegramServer) -> None:
    """With the answer itself two calls, which is all that a short turn may cost."""
    watched = Watched(telegram)
    watched.view.show("Hel")
    await watched.after(0.9, 1)
    watched.view.show("Hello")

    assert await watched.view.close() is None
    assert [call.method for call in telegram.calls] == ["sendChatAction"]


async def test_typing_is_shown_at_once_and_kept_up_until_closed(telegram: TelegramServer) -> None:
    """Telegram takes it away after five seconds; after the end it must not come again."""
    watched = Watched(telegram)
    await watched.after(0, 1)
    await watched.after(4, 2)
    await watched.after(4, 3)
    await watched.view.close()
    await watched.clock.advance(60)

    assert len(telegram.calls) == 3


async def test_a_growing_text_is_one_message_that_is_edited(telegram: TelegramServer) -> None:
    """At most once a second, formatted, under the question."""
    asked = telegram.say(CHAT, "why?")
    watched = Watched(telegram, reply_to=str(asked))
    await watched.after(0, 1)
    watched.view.show("**Because**")
    await watched.after(1, 2)
    (shown,) = telegram.messages(CHAT)

    assert (shown.text, shown.styled("bold"), shown.reply_to) == ("Because", ["Because"], asked)
    assert watched.opened == [str(shown.id)]

    for number in range(20):
        watched.view.show(f"**Because** {number}")
        await watched.clock.advance(0.04)
    await watched.after(0.4, 3)

    assert telegram.texts(CHAT) == ["Because 19"]
    assert await watched.view.close() == str(shown.id)


async def test_groups_are_edited_every_three_seconds(telegram: TelegramServer) -> None:
    """20 messages a minute is all that a group may get."""
    watched = Watched(telegram, GROUP_HERE)
    await watched.after(0, 1)
    watched.view.show("one")
    await watched.after(1.15, 2)
    watched.view.show("one two")
    await watched.clock.advance(2)

    assert len(telegram.calls) == 2

    await watched.after(1.15, 4)  # and typing once more

    assert telegram.texts(GROUP) == ["one two"]
    await watched.view.close()


async def test_the_status_line_stands_under_the_text_in_italics(telegram: TelegramServer) -> None:
    """One line that says what is going on; it goes when the text goes on."""
    watched = Watched(telegram)
    await watched.after(0, 1)
    watched.view.show("Looking")
    watched.view.status("bash: ls_of_*files*")
    await watched.after(1, 2)
    (shown,) = telegram.messages(CHAT)

    assert shown.text == "Looking\n\nbash: ls_of_*files*"
    assert shown.styled("italic") == ["bash: ls_of_*files*"]

    watched.view.status(None)
    await watched.after(1.15, 3)

    assert shown.text == "Looking"
    await watched.view.close()


async def test_a_status_without_text_is_shown_after_a_while(telegram: TelegramServer) -> None:
    """A tool that runs for a minute before the first word."""
    watched = Watched(telegram)
    await watched.after(0, 1)
    watched.view.status("running tests")
    await watched.clock.advance(1.5)

    assert len(telegram.calls) == 1

    await watched.after(0.6, 2)

    assert telegram.texts(CHAT) == ["running tests"]
    await watched.view.close()


async def test_a_long_text_shows_its_end(telegram: TelegramServer) -> None:
    """In one message, with the code block that is still open."""
    watched = Watched(telegram)
    await watched.after(0, 1)
    watched.view.show("start\n\n```python\n" + "".join(f"line_{number} = {number}\n" for number in range(5000)))
    watched.view.status("writing")
    await watched.after(1, 2)
    (shown,) = telegram.messages(CHAT)

    assert shown.text.endswith("line_4999 = 4999\n\nwriting")
    assert shown.entities[0] == {"type": "pre", "offset": 0, "length": len(shown.text) - len("\n\nwriting"), "language": "python"}
    await watched.view.close()


async def test_no_preview_is_sent_into_a_flood(telegram: TelegramServer) -> None:
    """Neither edits nor typing; and never a new message because an edit was refused."""
    watched = Watched(telegram)
    await watched.after(0, 1)
    watched.view.show("one")
    await watched.after(1, 2)
    telegram.fail("editMessageText", Fault(code=429, description="Too Many Requests", parameters={"retry_after": 30}))
    watched.view.show("two")
    await watched.after(1.15, 3)
    watched.view.show("three")
    await watched.clock.advance(27)

    assert len(telegram.calls) == 3

    await watched.clock.advance(4)
    await telegram.until(lambda: telegram.texts(CHAT) == ["three"])
    await watched.view.close()


async def test_a_preview_that_was_deleted_is_not_sent_again(telegram: TelegramServer) -> None:
    """The final text comes anyway."""
    watched = Watched(telegram)
    await watched.after(0, 1)
    watched.view.show("one")
    await watched.after(1, 2)
    telegram.world.messages[CHAT].clear()
    watched.view.show("two")
    await watched.after(1.15, 3)
    watched.view.show("three")
    await watched.clock.advance(1.5)

    assert telegram.messages(CHAT) == []
    await watched.view.close()


async def test_an_edit_on_its_way_is_awaited_before_the_final_text(telegram: TelegramServer) -> None:
    """It would otherwise arrive behind the final text and cover it."""
    channel = channel_of(telegram)
    refs: list[str] = []
    view = channel.live(GROUP_HERE, reply_to=None, opened=refs.append)
    telegram.fail("sendMessage", Fault(slow_s=0.3))
    view.show("half of the an")
    await SystemClock().sleep(1.15)
    draft = await view.close()
    await send(channel, "half of the answer", to=GROUP_HERE, progress=Progress(draft=draft))

    assert [draft] == refs
    assert telegram.texts(GROUP) == ["half of the answer"]


@pytest.mark.parametrize(
    "fault", [Fault(drop="before"), Fault(code=500), Fault(code=403, description="Forbidden: bot was blocked by the user")]
)
async def test_closing_never_raises(fault: Fault, telegram: TelegramServer) -> None:
    """Whatever went wrong with what was shown, the answer follows."""
    for method in ("sendChatAction", "sendMessage"):
        telegram.fail(method, fault, times=5)
    watched = Watched(telegram)
    await watched.after(0, 1)
    watched.view.show("one")
    await watched.after(1, 2)

    assert await watched.view.close() is None
    assert await watched.view.close() is None


async def test_a_telegram_that_hangs_holds_up_the_answer_only_for_a_while(telegram: TelegramServer) -> None:
    """Five seconds at most, then the view is cut off."""
    watched = Watched(telegram)
    await watched.after(0, 1)
    telegram.fail("sendMessage", Fault(slow_s=3))
    watched.view.show("one")
    await watched.clock.advance(1)
    await SystemClock().sleep(0.05)
    closing = asyncio.create_task(watched.view.close())
    await watched.clock.advance(5)

    assert await asyncio.wait_for(closing, 1) is None


async def test_general_keeps_its_number_while_typing(telegram: TelegramServer) -> None:
    """There it is wanted, and refused when sending."""
    watched = Watched(telegram, Address("telegram", str(GROUP), "1"))
    await watched.after(0, 1)
    watched.view.show("hello")
    await watched.after(1, 2)
    await watched.view.close()

    assert telegram.calls[0].values["message_thread_id"] == "1"
    assert "message_thread_id" not in telegram.calls[1].values


# Drafts


async def test_a_private_chat_sees_a_draft_that_passes(telegram: TelegramServer) -> None:
    """No message is edited; the one that comes in the end takes the draft's place."""
    watched = Watched(telegram, drafts=True)
    await watched.after(0, 1)
    watched.view.show("**Bec")
    await watched.after(1, 2)
    watched.view.show("**Because**")
    watched.view.status("reading")
    await watched.after(1.15, 3)

    assert telegram.drafts(CHAT) == ["Because\n\nreading"]
    assert telegram.messages(CHAT) == []
    assert not watched.view.lasting
    assert await watched.view.close() is None
    assert watched.opened == []

    await send(channel_of(telegram), "**Because** of you")

    assert (telegram.texts(CHAT), telegram.drafts(CHAT)) == (["Because of you"], [])


async def test_a_draft_is_shown_again_before_it_fades(telegram: TelegramServer) -> None:
    """A tool may run for minutes, and Telegram shows a draft for half of one."""
    watched = Watched(telegram, drafts=True)
    await watched.after(0, 1)
    watched.view.show("Let me see.")
    await watched.after(1, 2)
    for _ in range(4):
        await watched.clock.advance(5)
    await telegram.until(lambda: len(telegram.called("sendMessageDraft")) == 2)
    await watched.view.close()


@pytest.mark.parametrize("fault", [Fault(code=404, description="Not Found"), Fault(code=400, description="Bad Request: not here")])
async def test_where_there_are_no_drafts_messages_are_edited_from_then_on(telegram: TelegramServer, fault: Fault) -> None:
    """An older server, or a chat that cannot have them: the answer that goes on shows nothing more, the next one does."""
    telegram.fail("sendMessageDraft", fault)
    watched = Watched(telegram, drafts=True)
    await watched.after(0, 1)
    watched.view.show("one")
    await watched.after(1, 2)
    watched.view.show("two")
    await watched.clock.advance(1.5)
    await watched.view.close()

    assert (telegram.texts(CHAT), telegram.drafts(CHAT)) == ([], [])
    assert not watched.support.works


async def test_a_lost_connection_does_not_end_drafts(telegram: TelegramServer) -> None:
    """The next answer has them again."""
    telegram.fail("sendMessageDraft", Fault(drop="before"))
    watched = Watched(telegram, drafts=True)
    await watched.after(0, 1)
    watched.view.show("one")
    await watched.after(1, 2)
    await watched.view.close()

    assert watched.support.works


# Reactions


async def test_whoever_asks_in_a_group_sees_that_it_was_heard(telegram: TelegramServer) -> None:
    """Until the answer is there; in a private chat the typing indicator says as much."""
    asked = telegram.say(GROUP, "why?")
    watched = Watched(telegram, GROUP_HERE, reply_to=str(asked))
    await telegram.until(lambda: telegram.world.reactions)

    assert telegram.world.reactions == {(GROUP, asked): "👀"}

    await watched.view.close()
    await asyncio.gather(*watched.chores)

    assert telegram.world.reactions == {}


async def test_a_group_without_reactions_still_sees_the_answer_grow(telegram: TelegramServer) -> None:
    """What is refused there is nothing to tell anybody."""
    asked = telegram.say(GROUP, "why?")
    telegram.fail("setMessageReaction", Fault(code=400, description="Bad Request: REACTION_INVALID"), times=2)
    watched = Watched(telegram, GROUP_HERE, reply_to=str(asked))
    await watched.after(0, 2)
    watched.view.show("because")
    await watched.after(1, 3)

    assert telegram.texts(GROUP) == ["because"]
    await watched.view.close()
    await asyncio.gather(*watched.chores)
