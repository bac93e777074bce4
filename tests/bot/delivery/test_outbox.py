"""What goes out: in order, once, whatever the platform does."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from bot.delivery.delivery import intend_draft
from features.contracts.chat import Address, Button, DeliveryRefused, DeliveryUncertain, OutboundMessage
from features.contracts.errors import RetryLater, UserMustAct
from tests.bot.delivery.rig import Rig, eventually, opened


def said(text: str) -> OutboundMessage:
    return OutboundMessage(text=text)


async def until_idle(rig: Rig) -> None:
    await eventually(lambda: rig.outbox.idle)


async def test_what_is_posted_arrives_and_costs_two_commits(tmp_path: Path) -> None:
    """One that it is there, one that it was sent; nothing in between when nothing is ahead of it."""
    async with opened(tmp_path) as rig:
        before = rig.database.commits
        await rig.outbox.post(rig.chat().address, said("hello"))
        assert (await rig.chat().answer()).text == "hello"
        await until_idle(rig)

        assert await rig.outbox_states() == ["sent"]
        assert rig.database.commits == before + 2


async def test_halves_of_characters_hold_nothing_up(tmp_path: Path) -> None:
    """JSON may hold them, and whoever brings a text may have cut it anywhere; no database takes them."""
    async with opened(tmp_path) as rig:
        message = OutboundMessage(text="lone \ud83d", buttons=((Button(label="\udc00 x", command="/x \ud800"),),))
        await rig.outbox.post(rig.chat().address, message)
        sent = await rig.chat().answer()

        assert sent.text == "lone \ufffd"


async def test_a_chat_keeps_its_order_and_a_stuck_one_blocks_no_other(tmp_path: Path) -> None:
    """Two promises at once: strict order per chat, and no chat waits for another."""
    async with opened(tmp_path) as rig:
        rig.channel.gate.clear()
        await rig.outbox.post(rig.chat("slow").address, said("first"))
        await rig.outbox.post(rig.chat("slow").address, said("second"))
        assert await rig.outbox_states() == ["sending", "pending"]
        rig.channel.gate.set()
        await rig.outbox.post(rig.chat("other").address, said("quick"))

        assert (await rig.chat("other").answer()).text == "quick"
        assert [(await rig.chat("slow").answer()).text for _ in range(2)] == ["first", "second"]


async def test_more_than_memory_holds_goes_out_in_order(tmp_path: Path) -> None:
    """While a platform is away for a day the outbox grows on the disk, not in memory."""
    async with opened(tmp_path) as rig:
        rig.channel.gate.clear()
        await asyncio.gather(*(rig.outbox.post(rig.chat().address, said(f"{n}")) for n in range(120)))
        rig.channel.gate.set()
        await rig.outbox.post(rig.chat().address, said("120"))

        assert [(await rig.chat().answer()).text for _ in range(121)] == [f"{n}" for n in range(121)]
        await until_idle(rig)
        assert set(await rig.outbox_states()) == {"sent"}


async def test_a_flood_is_waited_out_for_as_long_as_the_platform_says(tmp_path: Path) -> None:
    """Coming back earlier prolongs the ban; giving up loses the answer."""
    async with opened(tmp_path) as rig:
        rig.channel.before_send.append(RetryLater("flood", after=timedelta(seconds=600)))
        await rig.outbox.post(rig.chat().address, said("patience"))
        await eventually(lambda: rig.clock.sleepers == 1)
        assert await rig.outbox_states() == ["pending"]
        await rig.clock.advance(599)
        assert rig.chat().shown == []
        await rig.clock.advance(3)

        answer = await rig.chat().answer()
        assert answer.text == "patience"
        assert not answer.possible_duplicate


async def test_without_a_figure_the_waits_grow(tmp_path: Path) -> None:
    """An outage of hours is a handful of attempts, not thousands."""
    async with opened(tmp_path) as rig:
        rig.channel.before_send += [RetryLater("away")] * 20
        await rig.outbox.post(rig.chat().address, said("later"))
        for _ in range(60):
            await eventually(lambda: rig.clock.sleepers == 1)
            await rig.clock.advance(60)
        [(attempts,)] = await rig.rows("SELECT attempts FROM outbox")

        assert 10 <= attempts <= 20
        assert len(rig.channel.before_send) >= 1


async def test_what_may_have_arrived_is_marked_when_it_is_sent_again(tmp_path: Path) -> None:
    """The connection broke after the platform had taken it: twice and said so is better than lost."""
    async with opened(tmp_path) as rig:
        rig.channel.after_send.append(DeliveryUncertain("the connection broke"))
        await rig.outbox.post(rig.chat().address, said("hello"))
        first = await rig.chat().answer()
        await eventually(lambda: rig.clock.sleepers == 1)
        await rig.clock.advance(5)
        second = await rig.chat().answer()

        assert (first.possible_duplicate, second.possible_duplicate) == (False, True)


async def test_a_broken_connection_over_parts_goes_on_where_it_was(tmp_path: Path) -> None:
    """Confirmed parts are never sent again."""
    async with opened(tmp_path) as rig:
        rig.channel.before_send += [None, RetryLater("away")]
        text = "a" * 1000 + "b" * 1000 + "c" * 1000
        await rig.outbox.post(rig.chat().address, said(text))
        await eventually(lambda: rig.clock.sleepers == 1)
        await rig.clock.advance(5)

        assert [(await rig.chat().answer()).text[0] for _ in range(3)] == ["a", "b", "c"]


async def test_a_refusal_is_told_and_the_next_message_goes_on(tmp_path: Path) -> None:
    """One illegal message must not block a chat for ever."""
    async with opened(tmp_path) as rig:
        rig.channel.before_send.append(DeliveryRefused("the chat is gone"))
        await rig.outbox.post(rig.chat().address, said("first"))
        await rig.outbox.post(rig.chat().address, said("second"))

        assert (await rig.chat().answer()).text == "second"
        await until_idle(rig)
        assert await rig.outbox_states() == ["refused", "sent"]
        assert [(delivery.message.text, reason) for delivery, reason in rig.refused] == [("first", "the chat is gone")]


async def test_a_defect_of_a_channel_is_given_up_after_a_few_attempts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with an id that whoever is told reads too, and the chat goes on."""
    async with opened(tmp_path) as rig:
        rig.channel.before_send += [ZeroDivisionError()] * 4
        await rig.outbox.post(rig.chat().address, said("poison"))
        await rig.outbox.post(rig.chat().address, said("next"))
        answer = asyncio.create_task(rig.chat().answer())
        while not answer.done():  # how many of the waits one move of the clock ends is up to the database's thread
            await rig.clock.advance(60)

        assert (await answer).text == "next"
        [(_, reason)] = rig.refused
        assert reason.split()[-1] in str([record.__dict__["facts"] for record in caplog.records])


async def test_a_channel_that_is_not_here_refuses_the_post(tmp_path: Path) -> None:
    """Better a word now than a row that nobody ever sends."""
    async with opened(tmp_path) as rig:
        with pytest.raises(UserMustAct, match="no fax channel"):
            await rig.outbox.post(Address("fax", "1"), said("hello"))


async def test_after_a_crash_what_was_being_sent_goes_out_marked_and_the_rest_unmarked(tmp_path: Path) -> None:
    """Only the one whose fate is unknown may be there already."""
    async with opened(tmp_path) as rig:
        rig.channel.gate.clear()
        await rig.outbox.post(rig.chat().address, said("in flight"))
        await rig.outbox.post(rig.chat().address, said("behind it"))
    async with opened(tmp_path) as rig:
        await rig.outbox.recover()
        shown = [await rig.chat().answer() for _ in range(2)]

    assert [(each.text, each.possible_duplicate) for each in shown] == [("in flight", True), ("behind it", False)]


async def test_after_a_crash_a_draft_is_replaced_unmarked(tmp_path: Path) -> None:
    """Replacing a draft once more changes nothing, so there is nothing to warn of."""
    async with opened(tmp_path) as rig:
        rig.channel.gate.clear()
        delivery = rig.outbox.run_delivery(rig.chat().address, said("whole answer"), run_id="r1", answers=())
        rig.channel.live(rig.chat().address, reply_to=None, opened=lambda ref: None).show("whole an")
        left = rig.chat().shown
        delivery.draft = left[0].ref
        await rig.outbox.write(rig.outbox.put(delivery, final=True))
        await rig.outbox.release(delivery)
    async with opened(tmp_path) as rig:
        rig.chat().shown += left
        await rig.outbox.recover()
        answer = await rig.chat().answer()

    assert (answer.text, answer.possible_duplicate, answer.edits) == ("whole answer", False, 1)


async def test_after_a_crash_a_draft_of_unknown_id_makes_the_answer_a_possible_duplicate(tmp_path: Path) -> None:
    """The platform had shown it, and its id was never written down."""
    async with opened(tmp_path) as rig:
        delivery = rig.outbox.run_delivery(rig.chat().address, said("whole answer"), run_id="r1", answers=())
        await rig.outbox.write(intend_draft(delivery))
        await rig.outbox.write(rig.outbox.put(delivery, final=True))
    async with opened(tmp_path) as rig:
        cut = await rig.outbox.recover()
        answer = await rig.chat().answer()

    assert cut == {}
    assert answer.possible_duplicate


async def test_a_run_that_had_only_a_draft_is_given_back(tmp_path: Path) -> None:
    """There is nothing to send yet; the run goes on, and its answer takes the draft's place."""
    async with opened(tmp_path) as rig:
        delivery = rig.outbox.run_delivery(rig.chat().address, said(""), run_id="r1", answers=())
        await rig.outbox.write(intend_draft(delivery))
        rig.outbox.note_draft("r1", "m7")
        await until_idle(rig)
    async with opened(tmp_path) as rig:
        cut = await rig.outbox.recover()

        assert {str(address): (run.run_ids, run.draft, run.uncertain) for address, run in cut.items()} == {"loop:1": (("r1",), "m7", False)}
        assert rig.chat().shown == []


async def test_a_poster_that_is_cancelled_leaves_the_lane_in_order(tmp_path: Path) -> None:
    """/stop cancels a tool in the middle of its send; what it had begun to store is sent or not, and the next goes on."""
    async with opened(tmp_path) as rig:
        posting = asyncio.ensure_future(rig.outbox.post(rig.chat().address, said("cancelled")))
        await asyncio.sleep(0)
        posting.cancel()
        await rig.outbox.post(rig.chat().address, said("next"))
        await until_idle(rig)

        assert [shown.text for shown in rig.chat().shown][-1] == "next"
        assert len(rig.chat().shown) == len(await rig.outbox_states())


async def test_secrets_do_not_leave(tmp_path: Path) -> None:
    """Whoever posts, the outbox is the last gate."""
    async with opened(tmp_path) as rig:
        await rig.outbox.post(rig.chat().address, said("it is hunter22"))

        assert (await rig.chat().answer()).text == "it is [REDACTED]"
        await until_idle(rig)
        assert [delivery.message.text for delivery in rig.delivered] == ["it is [REDACTED]"]
