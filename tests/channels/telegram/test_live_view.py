"""An answer while it grows."""

import asyncio
from random import Random

import pytest

from bot.clock import SystemClock
from channels.telegram import TelegramOptions
from channels.telegram.api import TelegramApi
from channels.telegram.flood_gate import FloodGate
from channels.telegram.live_view import TelegramLiveView
from features.contracts.chat import Address
from features.contracts.testing import FakeClock
from tests.channels.telegram.rig import CHAT, GROUP, HERE, Progress, channel_of, send
from tests.servers.telegram import Fault, TelegramServer

GROUP_HERE = Address("telegram", str(GROUP))


class Watched:
    """A view that is driven by hand."""

    def __init__(self, telegram: TelegramServer, address: Address = HERE, *, reply_to: str | None = None) -> None:
        self.telegram = telegram
        self.clock = FakeClock()
        self.opened: list[str] = []
        self.gate = FloodGate(self.clock, per_second=30)
        api = TelegramApi(TelegramOptions(telegram.token, telegram.url))
        self.view = TelegramLiveView(
            api, self.gate, address, reply_to=reply_to, opened=self.opened.append, clock=self.clock, random=Random(1)
        )

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
    await watched.after(0.3, 3)

    assert telegram.texts(CHAT) == ["Because 19"]
    assert await watched.view.close() == str(shown.id)


async def test_groups_are_edited_every_three_seconds(telegram: TelegramServer) -> None:
    """20 messages a minute is all that a group may get."""
    watched = Watched(telegram, GROUP_HERE)
    await watched.after(0, 1)
    watched.view.show("one")
    await watched.after(1.1, 2)
    watched.view.show("one two")
    await watched.clock.advance(2)

    assert len(telegram.calls) == 2

    await watched.after(1.1, 4)  # and typing once more

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
    await watched.after(1.1, 3)

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
    await watched.after(1.1, 3)
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
    await watched.after(1.1, 3)
    watched.view.show("three")
    await watched.clock.advance(1.5)

    assert telegram.messages(CHAT) == []
    await watched.view.close()


async def test_an_edit_on_its_way_is_awaited_before_the_final_text(telegram: TelegramServer) -> None:
    """It would otherwise arrive behind the final text and cover it."""
    channel = channel_of(telegram)
    refs: list[str] = []
    view = channel.live(HERE, reply_to=None, opened=refs.append)
    telegram.fail("sendMessage", Fault(slow_s=0.3))
    view.show("half of the an")
    await SystemClock().sleep(1.15)
    draft = await view.close()
    await send(channel, "half of the answer", progress=Progress(draft=draft))

    assert [draft] == refs
    assert telegram.texts(CHAT) == ["half of the answer"]


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
