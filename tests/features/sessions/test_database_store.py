"""What only the database store does: joining other work, and living with damage."""

import logging
from operator import methodcaller

import pytest

from features.contracts.database import Transaction
from features.contracts.sessions import BranchSummaryEntry, CompactionEntry, MessageEntry, SessionEntry, SessionHeader
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import DatabaseSessionStore, MemorySessionStore, SessionManager
from features.sessions.testing import TIMESTAMP, append_message, assistant, header, said, user
from features.storage import Database

CHAIN: list[SessionEntry] = [
    said("a", "one"),
    MessageEntry(id="b", parent_id="a", timestamp=TIMESTAMP, message=assistant("two")),
    said("c", "three", parent="b"),
    MessageEntry(id="d", parent_id="c", timestamp=TIMESTAMP, message=assistant("four")),
]


async def _damage(database: Database, entry_id: str, text: str | bytes) -> None:
    def work(transaction: Transaction) -> int:
        return transaction.execute("UPDATE entries SET json = CAST(? AS TEXT) WHERE id = ?", (text, entry_id))

    assert await database.write(work) == 1


async def _stored_text(database: Database, entry_id: str) -> str:
    row = await database.read(lambda transaction: transaction.fetch_one("SELECT json FROM entries WHERE id = ?", (entry_id,)))
    assert row is not None
    return str(row[0])


def _open_books(transaction: Transaction) -> None:
    transaction.execute("CREATE TABLE books (x)")


async def test_other_work_joins_the_append(database: Database, store: DatabaseSessionStore) -> None:
    """The host's books and the entry are in one commit."""
    await store.create("web:a", header("one"))
    before = database.commits
    await store.append("one", CHAIN, leaf="d", also=_open_books)

    assert database.commits == before + 1
    assert await database.read(lambda transaction: transaction.fetch_all("SELECT * FROM books")) == []


async def test_other_work_that_raises_takes_the_append_with_it(database: Database, store: DatabaseSessionStore) -> None:
    """And the other way round: neither exists without the other."""

    def refuse(transaction: Transaction) -> None:
        _open_books(transaction)
        raise LookupError("no")

    await store.create("web:a", header("one"))
    with pytest.raises(LookupError):
        await store.append("one", CHAIN, leaf="d", also=refuse)
    with pytest.raises(KeyError):
        await store.append("gone", CHAIN, leaf="d", also=_open_books)

    assert await store.load("one") == (header("one"), [], None)
    books = await database.read(lambda transaction: transaction.fetch_all("SELECT name FROM sqlite_master WHERE name = 'books'"))
    assert books == []


async def test_a_store_in_memory_refuses_other_work() -> None:
    """It has no transaction; doing it outside one would break the promise silently."""
    store = MemorySessionStore()
    await store.create("web:a", header("one"))
    with pytest.raises(ValueError, match="transaction"):
        await store.append("one", CHAIN, leaf="d", also=lambda _: None)

    assert (await store.load("one"))[1] == []


@pytest.mark.parametrize(
    "text", ["", "{", '{"type":"message"', "null", '{"type":"novelty","id":"b"}', b"\xff\xfe\x00", "[" * 100_000, "\x00"]
)
async def test_an_entry_that_cannot_be_read_is_left_out_and_its_children_stay(
    database: Database, store: DatabaseSessionStore, caplog: pytest.LogCaptureFixture, text: str | bytes
) -> None:
    """One damaged entry must not cost the conversation; its bytes stay for whoever can repair them."""
    await store.create("web:a", header("one"))
    await store.append("one", CHAIN, leaf="d")
    await _damage(database, "b", text)
    damaged = await _stored_text(database, "b")
    caplog.set_level(logging.WARNING, "pumice.sessions")

    manager = await SessionManager.open(store, "one", clock=FakeClock(), ids=sequential_ids())

    assert manager.messages == [user("one"), user("three"), assistant("four")]
    assert manager.entry("c").parent_id == "a"
    assert [record.message for record in caplog.records] == ["session entries unreadable"]

    await append_message(manager, user("five"))
    assert await _stored_text(database, "b") == damaged
    reopened = await SessionManager.open(store, "one", clock=FakeClock(), ids=sequential_ids())
    assert reopened.messages == manager.messages


async def test_several_damaged_entries_in_a_row_are_bridged(database: Database, store: DatabaseSessionStore) -> None:
    """The leaf among them: the branch then ends at the last entry that is left."""
    await store.create("web:a", header("one"))
    await store.append("one", CHAIN, leaf="d")
    for entry_id in ("b", "c", "d"):
        await _damage(database, entry_id, "?")

    assert await store.load("one") == (header("one"), [CHAIN[0]], "a")


async def test_a_damaged_root_leaves_the_rest_readable(database: Database, store: DatabaseSessionStore) -> None:
    """Its child becomes a root."""
    await store.create("web:a", header("one"))
    await store.append("one", CHAIN, leaf="d")
    await _damage(database, "a", "?")

    _, entries, leaf = await store.load("one")

    assert [(entry.id, entry.parent_id) for entry in entries] == [("b", None), ("c", "b"), ("d", "c")]
    assert leaf == "d"


async def test_what_a_compaction_kept_survives_the_loss_of_its_first_entry(database: Database, store: DatabaseSessionStore) -> None:
    """An entry too many in the context is better than losing all that was kept."""
    compaction = CompactionEntry(id="e", parent_id="d", timestamp=TIMESTAMP, summary="before", first_kept_entry_id="c", tokens_before=1)
    await store.create("web:a", header("one"))
    await store.append("one", [*CHAIN, compaction], leaf="e")
    await _damage(database, "c", "?")

    manager = await SessionManager.open(store, "one", clock=FakeClock(), ids=sequential_ids())

    assert manager.messages[1:] == [assistant("two"), assistant("four")]


async def test_a_damaged_header_does_not_hide_the_transcript(database: Database, store: DatabaseSessionStore) -> None:
    """A bad first line has made whole transcripts vanish elsewhere; what is known from the columns stands in."""
    await store.create("web:a", header("one"))
    await store.append("one", CHAIN, leaf="d")
    await database.write(lambda transaction: transaction.execute("UPDATE sessions SET header = '{broken'"))

    assert await store.load("one") == (SessionHeader(version=3, id="one", timestamp=TIMESTAMP, cwd=""), CHAIN, "d")


async def test_escaped_lone_surrogates_of_other_programs_are_read(database: Database, store: DatabaseSessionStore) -> None:
    """They are JSON, only no text; the entry is read with replacement characters."""
    await store.create("web:a", header("one"))
    await store.append("one", [said("a", "SURROGATE")], leaf="a")
    await _damage(database, "a", (await _stored_text(database, "a")).replace("SURROGATE", "x\\ud800y"))

    assert (await store.load("one"))[1] == [said("a", "x\ufffdy")]


async def test_a_circle_of_damaged_parents_ends(database: Database, store: DatabaseSessionStore) -> None:
    """Reading must not hang, whatever the columns say."""
    await store.create("web:a", header("one"))
    await store.append("one", CHAIN, leaf="d")
    for entry_id, parent in (("b", "c"), ("c", "b")):
        await _damage(database, entry_id, "?")
        sql = f"UPDATE entries SET parent_id = '{parent}' WHERE id = '{entry_id}'"
        await database.write(methodcaller("execute", sql))

    _, entries, leaf = await store.load("one")
    assert [(entry.id, entry.parent_id) for entry in entries] == [("a", None), ("d", None)]
    assert leaf == "d"


async def test_a_circle_of_readable_parents_ends(database: Database, store: DatabaseSessionStore) -> None:
    """Likewise for entries that an import brought."""
    entries: list[SessionEntry] = [said("a", "one", parent="b"), said("b", "two", parent="a")]
    await store.create("web:a", header("one"))
    await store.append("one", entries, leaf="b")

    manager = await SessionManager.open(store, "one", clock=FakeClock(), ids=sequential_ids())

    assert manager.messages == [user("one"), user("two")]


async def test_a_leaf_that_is_nowhere_becomes_the_last_entry(database: Database, store: DatabaseSessionStore) -> None:
    """As pi does it: going on from the end is better than from nothing."""
    await store.create("web:a", header("one"))
    await store.append("one", CHAIN, leaf="d")
    await database.write(lambda transaction: transaction.execute("UPDATE sessions SET leaf = 'nowhere'"))

    manager = await SessionManager.open(store, "one", clock=FakeClock(), ids=sequential_ids())

    assert manager.leaf_id == "d"


async def test_a_time_that_cannot_be_read_does_not_lose_its_entry(store: DatabaseSessionStore) -> None:
    """The message counts, not the minute."""
    summary = BranchSummaryEntry(id="a", parent_id=None, timestamp="yesterday", from_id="root", summary="s")
    await store.create("web:a", header("one"))
    await store.append("one", [summary], leaf="a")

    manager = await SessionManager.open(store, "one", clock=FakeClock(), ids=sequential_ids())

    assert [message.timestamp for message in manager.messages] == [0]


async def test_ten_thousand_entries_are_one_query(store: DatabaseSessionStore, database: Database) -> None:
    """And come in order."""
    entries: list[SessionEntry] = [said(str(number), "x", parent=str(number - 1) if number else None) for number in range(10_000)]
    await store.create("web:a", header("one"))
    await store.append("one", entries, leaf="9999")

    assert (await store.load("one"))[1] == entries
