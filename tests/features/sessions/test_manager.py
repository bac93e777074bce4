"""One session in memory: what it shows, when, and what survives."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from bot.ids import new_id
from features.contracts.database import Transaction
from features.contracts.sessions import CompactionEntry, SessionInfoEntry
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import DatabaseSessionStore, MemorySessionStore, SessionManager
from features.sessions.testing import TIMESTAMP, append_message, assistant, said, user
from features.storage import Database


async def _created(store: MemorySessionStore | DatabaseSessionStore, *, ids: Callable[[], str] | None = None) -> SessionManager:
    clock = FakeClock(datetime(2026, 1, 5, 9, 0, 0, 7000, tzinfo=UTC))
    return await SessionManager.create(store, "web:a", clock=clock, ids=ids or sequential_ids("session-entry"), cwd="/work")


async def _reopened(store: MemorySessionStore | DatabaseSessionStore, manager: SessionManager) -> SessionManager:
    return await SessionManager.open(store, manager.id, clock=FakeClock(), ids=sequential_ids())


async def test_a_new_session_is_stored_at_once() -> None:
    """A crash before the first answer must not lose it."""
    store = MemorySessionStore()
    manager = await SessionManager.create(
        store, "web:a", clock=FakeClock(), ids=sequential_ids(), cwd="/work", name=" Holiday\nplans ", make_current=False
    )

    assert (manager.header.version, manager.header.timestamp, manager.header.cwd) == (3, TIMESTAMP, "/work")
    assert (manager.messages, manager.model, manager.thinking, manager.name) == ([], None, "off", "Holiday plans")
    assert [summary.name for summary in await store.list("web:a")] == ["Holiday plans"]
    assert await store.current("web:a") is None


async def test_messages_grow_in_place_and_are_stored_as_they_come(store: DatabaseSessionStore) -> None:
    """A turn costs the same at 2,000 messages; whoever holds the list sees it grow."""
    manager = await _created(store)
    messages = manager.messages
    first = await append_message(manager, user("hello"))
    second = await append_message(manager, assistant("hi", model="anthropic/claude"))

    assert manager.messages is messages
    assert messages == [user("hello"), assistant("hi", model="anthropic/claude")]
    assert manager.leaf_id == second
    assert manager.entry(second).parent_id == first
    assert manager.entry(first).timestamp == "2026-01-05T09:00:00.007Z"
    assert manager.model == ("anthropic", "claude")
    assert (await _reopened(store, manager)).messages == messages


async def test_an_entry_id_is_the_short_tail_of_an_id() -> None:
    """People type it; tails that collide are passed over, and if all do the whole id serves."""
    tails = iter(["0-session", "1-aaaaaaaa", "2-aaaaaaaa", "3-bbbbbbbb"])
    manager = await _created(MemorySessionStore(), ids=lambda: next(tails, "9-aaaaaaaa"))

    assert [await append_message(manager, user(text)) for text in ("x", "y", "z")] == ["aaaaaaaa", "bbbbbbbb", "9-aaaaaaaa"]
    assert len(await append_message(await _created(MemorySessionStore(), ids=new_id), user("x"))) == 8


async def test_a_compaction_rebuilds_the_messages(store: DatabaseSessionStore) -> None:
    """The summary stands for what came before what was kept."""
    manager = await _created(store)
    await append_message(manager, user("one"))
    kept = await append_message(manager, user("two"))
    before = manager.messages
    compaction = CompactionEntry(
        id="c", parent_id=manager.leaf_id, timestamp=TIMESTAMP, summary="one", first_kept_entry_id=kept, tokens_before=5
    )
    await manager.append([compaction])
    await append_message(manager, user("three"))

    assert manager.messages is not before
    assert before == [user("one"), user("two")]
    assert manager.messages[1:] == [user("two"), user("three")]
    assert (await _reopened(store, manager)).messages == manager.messages


async def test_going_back_forks_and_the_old_branch_stays(store: DatabaseSessionStore) -> None:
    """Nothing is ever taken out of the tree; the choice of branch survives a restart."""
    manager = await _created(store)
    first = await append_message(manager, user("one"))
    old = await append_message(manager, user("two"))
    await manager.branch_to(first)
    assert (await _reopened(store, manager)).messages == [user("one")]
    new = await append_message(manager, user("other"))

    assert manager.messages == [user("one"), user("other")]
    assert [entry.id for entry in manager.branch()] == [first, new]
    assert [entry.id for entry in manager.entries] == [first, old, new]
    await manager.branch_to(old)
    assert manager.messages == [user("one"), user("two")]
    await manager.branch_to(None)
    assert (await _reopened(store, manager)).leaf_id is None
    with pytest.raises(KeyError):
        await manager.branch_to("nowhere")


async def test_model_and_thinking_are_stored_once_per_change(store: DatabaseSessionStore, database: Database) -> None:
    """Setting what is set already costs no commit."""
    manager = await _created(store)
    await manager.set_model("openai", "gpt")
    await manager.set_thinking("high")
    commits = database.commits
    await manager.set_model("openai", "gpt")
    await manager.set_thinking("high")

    assert database.commits == commits
    reopened = await _reopened(store, manager)
    assert (reopened.model, reopened.thinking) == (manager.model, manager.thinking) == (("openai", "gpt"), "high")


async def test_a_name_is_kept_whatever_the_branch(store: DatabaseSessionStore) -> None:
    """It names the session, not a branch."""
    manager = await _created(store)
    await manager.set_name("Plans")
    await manager.branch_to(None)

    assert manager.name == (await _reopened(store, manager)).name == "Plans"
    await manager.set_name("")
    assert manager.name == (await _reopened(store, manager)).name == ""


async def test_calls_from_several_tasks_end_up_on_one_branch(store: DatabaseSessionStore) -> None:
    """A command may change the model while an answer is stored; neither may fall beside the branch."""
    manager = await _created(store)
    await asyncio.gather(
        *(append_message(manager, user(str(number))) for number in range(20)), manager.set_model("p", "m"), manager.set_name("n")
    )

    assert manager.messages == [user(str(number)) for number in range(20)]
    assert len(manager.branch()) == len(manager.entries) == 22
    assert (await _reopened(store, manager)).messages == manager.messages


async def test_entries_made_beforehand_follow_whatever_is_last_by_then(store: DatabaseSessionStore) -> None:
    """The agent shows an entry to the host's books before it is stored, and a command may come in between."""
    manager = await _created(store)
    made = [manager.new_message_entry(user("one")), manager.new_message_entry(user("two"))]
    assert manager.messages == []
    await manager.set_model("p", "m")
    await manager.append(made)

    assert manager.messages == [user("one"), user("two")]
    assert [entry.parent_id for entry in manager.branch()] == [None, *(entry.id for entry in manager.branch()[:-1])]
    assert (await _reopened(store, manager)).messages == manager.messages


async def test_entries_made_and_never_stored_are_forgotten() -> None:
    """Their ids are remembered for a while only."""
    manager = await _created(MemorySessionStore())
    made = [manager.new_message_entry(user(str(number))) for number in range(100)]
    await manager.append([made[-1]])

    assert manager.messages == [user("99")]


async def test_entries_made_for_one_append_all_follow_each_other_however_many() -> None:
    """A past that is stored at once is a branch; a forgotten entry would hang beside it, and what came before it be lost to the model."""
    manager = await _created(MemorySessionStore())
    texts = [str(number) for number in range(300)]
    await manager.append([manager.new_message_entry(user(text)) for text in texts])

    assert manager.messages == [user(text) for text in texts]


async def test_an_append_that_makes_no_tree_is_refused() -> None:
    """An unknown parent would hide the entry, a taken id another one; nothing is stored then."""
    store = MemorySessionStore()
    manager = await _created(store)
    await manager.append([said("a", "one")])
    with pytest.raises(KeyError):
        await manager.append([said("b", "two", parent="a"), said("c", "three", parent="nowhere")])
    with pytest.raises(ValueError, match="there already"):
        await manager.append([said("b", "two", parent="a"), said("a", "again")])

    assert manager.messages == [user("one")]
    assert (await store.load(manager.id))[1] == [said("a", "one")]


async def test_other_work_joins_also_without_an_entry(store: DatabaseSessionStore, database: Database) -> None:
    """The leaf stays."""

    def books(transaction: Transaction) -> None:
        transaction.execute("CREATE TABLE IF NOT EXISTS books (x)")
        transaction.execute("INSERT INTO books VALUES (1)")

    manager = await _created(store)
    await append_message(manager, user("one"), also=books)
    await manager.append([], also=books)

    assert await database.read(lambda transaction: transaction.fetch_all("SELECT x FROM books")) == [(1,), (1,)]
    assert manager.messages == [user("one")]
    assert (await _reopened(store, manager)).leaf_id == manager.leaf_id


async def test_what_could_not_be_stored_is_not_shown(store: DatabaseSessionStore) -> None:
    """Here the session was deleted meanwhile; a full disk is the same."""
    manager = await _created(store)
    await append_message(manager, user("one"))
    leaf = manager.leaf_id
    await store.delete(manager.id)
    for change in (append_message(manager, user("two")), manager.set_name("x"), manager.branch_to(None)):
        with pytest.raises(KeyError):
            await change

    assert (manager.messages, manager.leaf_id, manager.name) == ([user("one")], leaf, "")


async def test_a_cancelled_append_shows_what_the_store_has(store: DatabaseSessionStore, database: Database) -> None:
    """A message that is marked as consumed and yet not in the branch would be lost for good."""
    begun, release = threading.Event(), threading.Event()

    def slow(_: Transaction) -> None:
        begun.set()
        assert release.wait(30)

    manager = await _created(store)
    appending = asyncio.create_task(append_message(manager, user("one"), also=slow))
    await asyncio.to_thread(begun.wait, 30)
    for _ in range(3):
        appending.cancel()
        await asyncio.sleep(0)
    release.set()
    await asyncio.wait({appending})

    assert appending.cancelled()
    assert manager.messages == [user("one")] == (await _reopened(store, manager)).messages
    await append_message(manager, user("two"))
    assert (await _reopened(store, manager)).messages == [user("one"), user("two")]


async def test_lone_surrogates_are_the_same_in_memory_and_after_a_restart(store: DatabaseSessionStore) -> None:
    """The model must not read one text now and another later; nor can it be sent such a text."""
    manager = await _created(store)
    await append_message(manager, user("a\ud800"))
    await manager.append([manager.new_message_entry(user("b\udfff"))])
    await manager.set_name("n\ud800")

    assert manager.messages == [user("a\ufffd"), user("b\ufffd")] == (await _reopened(store, manager)).messages
    assert manager.name == (await _reopened(store, manager)).name == "n\ufffd"


async def test_opening_a_session_that_is_not_there_is_a_key_error() -> None:
    """The caller falls back to a fresh one and says so."""
    with pytest.raises(KeyError):
        await SessionManager.open(MemorySessionStore(), "gone", clock=FakeClock(), ids=sequential_ids())


async def test_a_name_among_appended_entries_counts() -> None:
    """An import brings names as entries."""
    manager = await _created(MemorySessionStore())
    await manager.append([SessionInfoEntry(id="n", parent_id=None, timestamp=TIMESTAMP, name="Imported")])

    assert manager.name == "Imported"
