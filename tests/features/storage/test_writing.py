"""Works, their order, and the transactions that they share."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from features.contracts.database import Migrations, Transaction
from features.contracts.errors import RetryLater
from features.storage import Database, connection
from tests.features.storage.works import add, texts


@pytest.fixture
async def database(tmp_path: Path, notes: Sequence[Migrations]) -> AsyncIterator[Database]:
    async with Database(tmp_path / "state.db", notes) as opened:
        yield opened


async def test_a_write_returns_what_its_work_returned_and_is_read_back(database: Database) -> None:
    """The plain case."""
    assert await database.write(add("one")) == 1
    assert await database.write(add("two")) == 2

    assert await database.read(texts) == ["one", "two"]
    assert database.commits == 2


async def test_works_that_wait_together_share_their_commits(database: Database) -> None:
    """Durability costs a flush per batch, not per message."""
    ids = await asyncio.gather(*(database.write(add(str(number))) for number in range(200)))

    assert ids == list(range(1, 201))
    assert await database.read(texts) == [str(number) for number in range(200)]
    assert database.commits <= 3


async def test_more_works_than_may_wait_are_held_back_and_keep_their_order(database: Database) -> None:
    """A flood is slowed down, not refused, and the queue is bounded."""
    await asyncio.gather(*(database.write(add(str(number))) for number in range(2500)))

    assert await database.read(texts) == [str(number) for number in range(2500)]


async def test_a_work_that_raises_undoes_itself_alone(database: Database) -> None:
    """Neighbours in the same transaction must not pay for it."""

    def half_done(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO notes (text) VALUES ('half')")
        raise LookupError("no")

    results = await asyncio.gather(
        database.write(add("before")), database.write(half_done), database.write(add("after")), return_exceptions=True
    )

    assert isinstance(results[1], LookupError)
    assert await database.read(texts) == ["before", "after"]
    assert database.commits == 1


async def test_a_single_work_that_raises_leaves_nothing(database: Database) -> None:
    """It has no savepoint of its own, so the whole transaction goes."""

    def half_done(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO notes (text) VALUES ('half')")
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        await database.write(half_done)

    assert await database.read(texts) == []
    assert database.commits == 0


async def test_a_constraint_that_is_broken_is_the_callers_own_error(database: Database) -> None:
    """A slice may rely on it, so it is not dressed up as trouble with the file."""
    await database.write(add("one", 7))

    with pytest.raises(sqlite3.IntegrityError):
        await database.write(add("again", 7))


async def test_a_work_that_ends_the_shared_transaction_harms_only_itself(database: Database) -> None:
    """Its neighbours are run again without it; what follows the lost transaction is not committed bit by bit."""

    def rude(transaction: Transaction) -> None:
        transaction.execute("ROLLBACK")
        transaction.execute("INSERT INTO notes (text) VALUES ('stray')")

    results = await asyncio.gather(
        database.write(add("before")), database.write(rude), database.write(add("after")), return_exceptions=True
    )

    assert [isinstance(result, Exception) for result in results] == [False, True, False]
    assert await database.read(texts) == ["before", "after"]


async def test_an_insert_that_returns_rows_is_committed_though_not_all_rows_were_fetched(database: Database) -> None:
    """An unfinished statement would keep SQLite from committing."""

    def work(transaction: Transaction) -> object:
        return transaction.fetch_one("INSERT INTO notes (text) VALUES ('a'), ('b') RETURNING text")

    assert await database.write(work) == ("a",)
    assert await database.read(texts) == ["a", "b"]


async def test_execute_tells_how_many_rows_changed(database: Database) -> None:
    """Slices decide by it; statements that change nothing are 0, never -1."""
    await database.write(add("a"))
    await database.write(add("b"))

    assert await database.write(lambda transaction: transaction.execute("UPDATE notes SET text = 'c'")) == 2
    assert await database.write(lambda transaction: transaction.execute("DELETE FROM notes WHERE id = 9")) == 0
    assert await database.write(lambda transaction: transaction.execute("SELECT 1")) == 0


async def test_foreign_keys_are_enforced(tmp_path: Path) -> None:
    """SQLite leaves them off unless told."""
    tables = ("CREATE TABLE a (id INTEGER PRIMARY KEY)", "CREATE TABLE b (a INTEGER REFERENCES a (id))")
    async with Database(tmp_path / "other.db", [Migrations(slice="x", steps=(tables,))]) as database:
        with pytest.raises(sqlite3.IntegrityError):
            await database.write(lambda transaction: transaction.execute("INSERT INTO b VALUES (1)"))


async def test_lone_surrogates_are_stored_as_replacement_characters(database: Database) -> None:
    """Texts come from strangers; UTF-8 has no form for these, and a message must not be lost for them."""
    await database.write(add("a\ud800b \U0001f600"))

    assert await database.read(texts) == ["a\ufffdb \U0001f600"]


def _held(database: Database, release: threading.Event) -> "asyncio.Task[None]":
    """Keep the writer's thread busy until released."""

    def work(_: Transaction) -> None:
        assert release.wait(30)

    return asyncio.create_task(database.write(work))


async def _started(task: "asyncio.Task[Any]") -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()


async def test_a_write_that_is_cancelled_while_it_waits_is_dropped(database: Database) -> None:
    """Nobody wants it any more, and it has not begun."""
    release = threading.Event()
    holding = _held(database, release)
    await _started(holding)
    waiting = asyncio.create_task(database.write(add("unwanted")))
    wanted = asyncio.create_task(database.write(add("wanted")))
    await _started(waiting)
    waiting.cancel()
    release.set()
    await wanted

    assert waiting.cancelled()
    assert await database.read(texts) == ["wanted"]
    await holding


async def test_a_write_that_is_cancelled_once_begun_is_done_whole(database: Database) -> None:
    """It may or may not have happened, but never by half."""
    begun, release = threading.Event(), threading.Event()

    def work(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO notes (text) VALUES ('first half')")
        begun.set()
        assert release.wait(30)
        transaction.execute("INSERT INTO notes (text) VALUES ('second half')")

    writing = asyncio.create_task(database.write(work))
    await asyncio.to_thread(begun.wait, 30)
    writing.cancel()
    await asyncio.wait({writing})
    release.set()
    await database.write(add("later"))

    assert writing.cancelled()
    assert await database.read(texts) == ["first half", "second half", "later"]


async def test_a_read_does_not_wait_for_the_writer_and_sees_the_last_commit(database: Database) -> None:
    """A long write must not make the host deaf."""
    await database.write(add("old"))
    begun, release = threading.Event(), threading.Event()

    def work(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO notes (text) VALUES ('new')")
        begun.set()
        assert release.wait(30)

    writing = asyncio.create_task(database.write(work))
    await asyncio.to_thread(begun.wait, 30)
    seen = await database.read(texts)
    release.set()
    await writing

    assert seen == ["old"]


async def test_a_read_cannot_write(database: Database) -> None:
    """There is one writer; a mistake in a slice shows as one."""
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await database.read(add("no"))


async def test_many_reads_at_a_time_share_a_few_connections(database: Database) -> None:
    """Threads and page caches are bounded."""
    before = threading.active_count()
    await database.write(add("x"))
    results = await asyncio.gather(*(database.read(texts) for _ in range(50)))

    assert results == [["x"]] * 50
    assert threading.active_count() <= before + 4


async def test_a_cancelled_read_gives_its_connection_back(database: Database) -> None:
    """Otherwise a few impatient callers would use up the pool."""
    for _ in range(10):
        begun, release = threading.Event(), threading.Event()

        def work(_: Transaction, begun: threading.Event = begun, release: threading.Event = release) -> None:
            begun.set()
            assert release.wait(30)

        reading = asyncio.create_task(database.read(work))
        await asyncio.to_thread(begun.wait, 30)
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        release.set()

    assert await database.read(texts) == []


async def test_another_programs_lock_is_waited_for_and_then_said(
    tmp_path: Path, notes: Sequence[Migrations], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost silently: the caller may try again."""
    monkeypatch.setattr(connection, "_BUSY_TIMEOUT_S", 0.05)
    async with Database(tmp_path / "state.db", notes) as database:
        with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(RetryLater):
                await database.write(add("kept out"))
            other.execute("ROLLBACK")
        await database.write(add("let in"))

        assert await database.read(texts) == ["let in"]


@pytest.mark.parametrize("call", [lambda database: database.write(texts), lambda database: database.read(texts)])
async def test_a_database_that_is_closed_says_so(
    tmp_path: Path, notes: Sequence[Migrations], call: Callable[[Database], "asyncio.Future[object]"]
) -> None:
    """A late caller gets an error, not an endless wait."""
    database = Database(tmp_path / "state.db", notes)
    with pytest.raises(RuntimeError, match="closed"):
        await call(database)
    async with database:
        await call(database)
    with pytest.raises(RuntimeError, match="closed"):
        await call(database)


async def test_closing_carries_out_what_waits(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """A graceful stop loses nothing that was handed in."""
    async with Database(tmp_path / "state.db", notes) as database:
        writes = [asyncio.create_task(database.write(add(str(number)))) for number in range(20)]
        await asyncio.sleep(0)
    await asyncio.gather(*writes)

    async with Database(tmp_path / "state.db", notes) as database:
        assert len(await database.read(texts)) == 20


async def test_a_cancelled_close_still_ends_every_thread(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """Their threads are no daemons: one that is left keeps the process from exiting."""
    before = threading.active_count()
    database = await Database(tmp_path / "state.db", notes).__aenter__()
    await database.read(texts)
    release = threading.Event()
    holding = _held(database, release)
    await _started(holding)
    closing = asyncio.create_task(database.__aexit__(None, None, None))
    await _started(closing)
    closing.cancel()
    await _started(closing)
    release.set()
    await asyncio.wait({closing, holding})

    assert closing.cancelled()
    assert threading.active_count() == before
