"""What is accepted, and when."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from bot.delivery.inbox import StoredMessage
from features.contracts.chat import Cursor, Person
from tests.bot.delivery.rig import opened


async def test_a_message_is_on_the_disk_before_it_is_handed_on(tmp_path: Path) -> None:
    """A crash right after the platform was told must find it again."""
    async with opened(tmp_path) as rig:
        message = rig.chat().message("hello")
        await rig.inbox.accept([message], Cursor(name="c", value=7))

        [handed] = rig.handed
        assert handed.message == message
        assert await rig.inbox_states() == ["waiting"]
        assert await rig.inbox.cursor("c") == 7


async def test_a_batch_and_its_cursor_cost_one_commit(tmp_path: Path) -> None:
    """Nothing is acknowledged that is not stored, and a flush is paid once."""
    async with opened(tmp_path) as rig:
        before = rig.database.commits
        await rig.inbox.accept([rig.chat(str(n)).message(f"message {n}") for n in range(20)], Cursor(name="c", value=20))

        assert rig.database.commits == before + 1
        assert [stored.message.text for stored in rig.handed] == [f"message {n}" for n in range(20)]


async def test_the_same_delivery_is_taken_once(tmp_path: Path) -> None:
    """A platform that was not told delivers again, also after a restart; nobody is answered twice."""
    async with opened(tmp_path) as rig:
        message = rig.chat().message("hello")
        await rig.inbox.accept([message])
        await rig.inbox.accept([message, message])
        assert len(rig.handed) == 1
    async with opened(tmp_path) as rig:
        await rig.inbox.accept([message])

        assert rig.handed == []
        assert await rig.inbox_states() == ["waiting"]


async def test_the_same_message_under_another_delivery_is_taken_once(tmp_path: Path) -> None:
    """After a change of the bot's token the update ids begin anew, the message ids do not."""
    async with opened(tmp_path) as rig:
        message = rig.chat().message("hello")
        await rig.inbox.accept([message])
        await rig.inbox.accept([msgspec.structs.replace(message, key="another")])

        assert len(rig.handed) == 1


async def test_a_message_that_is_known_by_another_id_is_taken_once(tmp_path: Path) -> None:
    """Slack's clients send again under their own id, with everything else new; also within one batch, and after a restart."""
    async with opened(tmp_path) as rig:
        first = msgspec.structs.replace(rig.chat().message("hello"), aliases=("client:1",))
        again = msgspec.structs.replace(rig.chat().message("hello"), aliases=("client:1", "client:2"))
        await rig.inbox.accept([first, again])
        await rig.inbox.accept([again])
        assert len(rig.handed) == 1
    async with opened(tmp_path) as rig:
        await rig.inbox.accept([again, msgspec.structs.replace(rig.chat().message("new"), aliases=("client:3",))])

        assert [stored.message.text for stored in rig.handed] == ["new"]


async def test_an_edit_is_no_duplicate_of_what_it_changes(tmp_path: Path) -> None:
    """Both have the same message id."""
    async with opened(tmp_path) as rig:
        message = rig.chat().message("hello")
        edit = rig.chat().message("hallo", kind="edit", ref=message.ref)
        await rig.inbox.accept([message])
        await rig.inbox.accept([edit])

        assert [stored.message.kind for stored in rig.handed] == ["message", "edit"]


async def test_who_is_not_admitted_leaves_no_trace_but_a_reply(tmp_path: Path) -> None:
    """The gate stands before the disk; the cursor moves on all the same."""
    async with opened(tmp_path) as rig:
        stranger = Person(id="loop:9", name="Mallory")
        await rig.inbox.accept([rig.chat().message("let me in", sender=stranger)], Cursor(name="c", value=1))
        await asyncio.sleep(0)

        assert rig.handed == []
        assert await rig.inbox_states() == []
        assert await rig.inbox.cursor("c") == 1
        assert rig.refusals == [("let me in", "I do not know you.", "Mallory was here.")]


async def test_an_owner_is_marked(tmp_path: Path) -> None:
    """What an owner may do hangs on it until the run."""
    async with opened(tmp_path) as rig:
        await rig.inbox.accept([rig.chat().message("hello", sender=Person(id="loop:2", name="Olga")), rig.chat().message("hi")])

        assert [stored.owner for stored in rig.handed] == [True, False]


async def test_a_caller_that_goes_away_does_not_strand_its_message(tmp_path: Path) -> None:
    """An HTTP client hangs up in the middle of its request; what was stored is worked on all the same."""
    async with opened(tmp_path) as rig:
        accepting = asyncio.ensure_future(rig.inbox.accept([rig.chat().message("hello")]))
        while rig.database.commits == 0 and not accepting.done():
            accepting.cancel()
            await asyncio.sleep(0)
        for _ in range(200):
            if rig.handed or not await rig.inbox_states():
                break
            await asyncio.sleep(0.001)

        assert len(rig.handed) == len(await rig.inbox_states())


async def test_what_cannot_be_stored_is_refused_and_not_handed_on(tmp_path: Path) -> None:
    """The channel keeps it unacknowledged and tries again."""
    async with opened(tmp_path) as rig:
        await rig.database.write(lambda t: t.execute("ALTER TABLE inbox RENAME TO elsewhere"))
        with pytest.raises(Exception, match="inbox"):
            await rig.inbox.accept([rig.chat().message("hello")])
        assert rig.handed == []

        await rig.database.write(lambda t: t.execute("ALTER TABLE elsewhere RENAME TO inbox"))
        await rig.inbox.accept([rig.chat().message("hello")])
        assert len(rig.handed) == 1


async def test_a_closed_database_refuses(tmp_path: Path) -> None:
    """At the end of the host nothing may be acknowledged that was not written."""
    async with opened(tmp_path) as rig:
        inbox, message = rig.inbox, rig.chat().message("late")

    with pytest.raises(RuntimeError, match="closed"):
        await inbox.accept([message])


async def test_what_waits_comes_back_in_order(tmp_path: Path) -> None:
    """After a restart, and where a chat had more than fits into memory."""
    async with opened(tmp_path) as rig:
        await rig.inbox.accept([rig.chat("1").message(f"one {n}") for n in range(5)])
        await rig.inbox.accept([rig.chat("2").message("two")])
    async with opened(tmp_path) as rig:
        addresses, last = await rig.inbox.waiting_addresses()
        first = await rig.inbox.waiting(rig.chat("1").address, after=0, limit=3)
        rest = await rig.inbox.waiting(rig.chat("1").address, after=first[-1].position, limit=3)

    assert [address.chat for address in addresses] == ["1", "2"]
    assert last == 6
    assert [stored.message.text for stored in (*first, *rest)] == [f"one {n}" for n in range(5)]


async def test_a_message_of_any_size_and_content_survives(tmp_path: Path) -> None:
    """Text with NUL and a megabyte are still somebody's message."""
    texts = ["\x00 nul", "\U0001f600", "x" * 1_000_000, ""]
    async with opened(tmp_path) as rig:
        await rig.inbox.accept([rig.chat().message(text) for text in texts])
        waiting: list[StoredMessage] = await rig.inbox.waiting(rig.chat().address, after=0, limit=10)

    assert [stored.message.text for stored in waiting] == texts


async def test_half_a_character_does_not_block_the_chat(tmp_path: Path) -> None:
    """JSON may hold lone surrogates, which no database takes; refusing them would have the platform deliver them for ever."""
    async with opened(tmp_path) as rig:
        await rig.inbox.accept([rig.chat().message("a\ud83d b", sender=Person(id="loop:1", name="\udc00"))])
        [waiting] = await rig.inbox.waiting(rig.chat().address, after=0, limit=10)

    assert waiting.message.text == "a\ufffd b"
