"""The full log of a place."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path

from bot.delivery import DELIVERY_MIGRATIONS
from bot.delivery.place_log import DatabasePlaceLog
from bot.testing import LoopbackChat
from features.contracts.chat import Address, Attachment, OutboundMessage
from features.storage import Database
from tests.bot.delivery.rig import Rig

PLACE = "loop:1"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Rig]:
    """With ids that sort by time, as the host's do."""
    numbers = count(1)
    async with Database(folder / "state.db", [DELIVERY_MIGRATIONS]) as database:
        rig = Rig(database, lambda: f"{next(numbers):06}")
        try:
            yield rig
        finally:
            await rig.close()


async def said(rig: Rig, chat: LoopbackChat, *texts: str) -> None:
    for text in texts:
        await rig.inbox.accept([chat.message(text)])
        await rig.clock.advance(60)


async def found(rig: Rig, *words: str, place: str = PLACE, limit: int = 50) -> list[str]:
    page = await DatabasePlaceLog(rig.database).search(place, words, limit=limit)
    return [message.text for message in page.messages]


async def test_both_sides_are_found_newest_first(tmp_path: Path) -> None:
    """By all words, in any case and script, as parts of words too."""
    async with opened(tmp_path) as rig:
        await said(rig, rig.chat(), "The Überraschung is on Friday", "no party", 'a "quoted" back\\slash')
        await rig.outbox.post(Address("loop", "1"), OutboundMessage(text="The party on friday is noted"))

        assert await found(rig, "FRIDAY") == ["The party on friday is noted", "The Überraschung is on Friday"]
        assert await found(rig, "überRASCH", "fri") == ["The Überraschung is on Friday"]
        assert await found(rig, '"quoted"') == ['a "quoted" back\\slash']
        assert await found(rig, "back\\slash") == ['a "quoted" back\\slash']
        assert len(await found(rig)) == 4
        assert await found(rig, "100%") == []
        assert await found(rig, "text") == []  # the name of a field in the stored form
        assert await found(rig, "anna") == []


async def test_another_place_is_never_seen_and_a_topic_is(tmp_path: Path) -> None:
    """Topics belong to their place."""
    async with opened(tmp_path) as rig:
        await said(rig, rig.channel.chat("1"), "in the chat")
        await said(rig, rig.channel.chat("1", "7"), "in a topic")
        await said(rig, rig.channel.chat("12"), "in another chat")
        log = DatabasePlaceLog(rig.database)
        page = await log.search("loop:12", ["chat"], limit=9)

        assert await found(rig, "in") == ["in a topic", "in the chat"]
        assert await log.message(PLACE, page.messages[0].id) is None
        assert await log.message("loop:12", page.messages[0].id) == page.messages[0]


async def test_pages_and_days(tmp_path: Path) -> None:
    """A search goes on where it stopped, and between two moments."""
    async with opened(tmp_path) as rig:
        begin = rig.clock.now()
        await said(rig, rig.chat(), *(f"note {number}" for number in range(1, 10)))
        log = DatabasePlaceLog(rig.database)
        first = await log.search(PLACE, ["note"], limit=4)
        second = await log.search(PLACE, ["note"], limit=4, before=first.more_before)
        last = await log.search(PLACE, ["note"], limit=4, before=second.more_before)
        between = await log.search(PLACE, ["note"], since=begin + timedelta(minutes=2), until=begin + timedelta(minutes=4), limit=9)

        assert [message.text for page in (first, second, last) for message in page.messages] == [f"note {n}" for n in range(9, 0, -1)]
        assert last.more_before is None
        assert [message.text for message in between.messages] == ["note 4", "note 3"]


async def test_files_and_edits_are_part_of_it(tmp_path: Path) -> None:
    """Who sent what is asked for most."""
    async with opened(tmp_path) as rig:
        chat = rig.chat()
        original = chat.message("see this", attachments=(Attachment(ref="x", name="Invoice.pdf", kind="file"),))
        await rig.inbox.accept([original])
        await rig.inbox.accept([chat.message("see that", kind="edit", ref=original.ref)])

        assert await found(rig, "invoice") == ["see this\n[file: Invoice.pdf]"]
        assert await found(rig, "that") == ["(edited) see that"]


async def test_a_long_log_is_searched_in_parts(tmp_path: Path) -> None:
    """The database is asked for some hundred messages at a time, and an old one is still found."""
    async with opened(tmp_path) as rig:
        chat = rig.chat()
        await rig.inbox.accept([chat.message("the größte needle")])
        await rig.inbox.accept([chat.message(f"hay {number} größer") for number in range(1200)])
        assert await found(rig, "größte") == ["the größte needle"]
        assert await found(rig, "needle") == ["the größte needle"]
