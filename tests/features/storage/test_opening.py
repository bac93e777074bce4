"""Which files are opened, which are refused, and that a refused one is left as it is."""

import asyncio
import hashlib
import itertools
import random
import sqlite3
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from features.contracts.database import Migrations, Transaction
from features.contracts.errors import OperatorMustAct
from features.storage import Database
from features.storage.connection import open_connection
from tests.features.storage.works import add, texts


def _fingerprints(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


async def _filled(path: Path, notes: Sequence[Migrations]) -> None:
    async with Database(path, notes) as database:
        for number in range(200):
            await database.write(add(f"{number} " * 100))


async def _refused(path: Path, migrations: Sequence[Migrations]) -> str:
    """Why it was refused; fails if anything changed in the folder or a thread was left."""
    before, threads = _fingerprints(path.parent), threading.active_count()
    with pytest.raises(OperatorMustAct) as caught:
        async with Database(path, migrations):
            pass

    assert _fingerprints(path.parent) == before
    assert threading.active_count() == threads
    return str(caught.value)


def _garbage_in_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"garbage " * 8)


def _garbage_behind_magic(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(16)
        file.write(random.Random(1).randbytes(84))


def _garbage_in_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 5)
        file.write(random.Random(1).randbytes(4096))


def _truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _cut_to_one_byte(path: Path) -> None:
    path.write_bytes(b"S")


def _text_file(path: Path) -> None:
    path.write_text("this is no database\n" * 1000)


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize(
    "damage", [_garbage_in_header, _garbage_behind_magic, _garbage_in_page, _truncated, _cut_to_one_byte, _text_file, _zeros]
)
async def test_a_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, notes: Sequence[Migrations], damage: Callable[[Path], None]
) -> None:
    """Overwriting it would destroy what could still be saved; no file is made beside it either."""
    path = tmp_path / "state.db"
    await _filled(path, notes)
    damage(path)

    said = await _refused(path, notes)

    assert str(path) in said
    assert "damaged" in said


async def test_an_empty_file_with_a_log_is_refused(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """SQLite would throw the log away, which may hold the only copy of the last commits."""
    path = tmp_path / "state.db"
    path.touch()
    (tmp_path / "state.db-wal").write_bytes(b"commits" * 100)

    assert "state.db-wal" in await _refused(path, notes)
    path.unlink()
    assert "state.db-wal" in await _refused(path, notes)


async def test_damage_under_a_log_that_was_not_folded_in_is_refused(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """After a crash the log is part of the database; it is read, and neither file is written."""
    source, path = tmp_path / "source.db", tmp_path / "copy" / "state.db"
    path.parent.mkdir()
    await _filled(source, notes)
    async with Database(source, notes) as database:
        await database.write(add("in the log"))
        for suffix in ("", "-wal"):
            path.with_name(path.name + suffix).write_bytes(source.with_name(source.name + suffix).read_bytes())
    _garbage_in_page(path)
    contents = path.read_bytes(), path.with_name("state.db-wal").read_bytes()

    with pytest.raises(OperatorMustAct, match="damaged"):
        await Database(path, notes).__aenter__()

    assert (path.read_bytes(), path.with_name("state.db-wal").read_bytes()) == contents


async def test_commits_in_the_log_of_a_crashed_host_are_there(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """A copy of file and log taken in mid-flight is what a kill leaves behind."""
    source, path = tmp_path / "source.db", tmp_path / "state.db"
    async with Database(source, notes) as database:
        await database.write(add("kept"))
        for suffix in ("", "-wal"):
            path.with_name(path.name + suffix).write_bytes(source.with_name(source.name + suffix).read_bytes())

    async with Database(path, notes) as database:
        assert await database.read(texts) == ["kept"]
        assert await database.check() == []


async def test_damage_met_while_running_names_the_file_and_does_not_stop_other_reads(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """One bad page costs what is on it."""
    path = tmp_path / "state.db"
    await _filled(path, notes)
    async with Database(path, notes) as database:
        _garbage_in_page(path)
        with pytest.raises(OperatorMustAct, match="damaged"):
            await database.read(texts)

        assert await database.check() != []
        assert await database.read(lambda transaction: transaction.fetch_one("SELECT 1")) == (1,)


async def test_text_that_is_no_utf8_any_more_does_not_hide_its_neighbours(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """A flipped bit in one message must not make a whole session unreadable."""
    async with Database(tmp_path / "state.db", notes) as database:
        await database.write(add("good"))
        await database.write(lambda transaction: transaction.execute("INSERT INTO notes (text) VALUES (CAST(X'61FF62' AS TEXT))"))

        assert await database.read(texts) == ["good", "a\ufffdb"]
        assert await database.read(texts) == ["good", "a\ufffdb"]


async def test_another_programs_database_is_refused(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """A mistyped data_dir must not add tables to somebody's file."""
    with closing(sqlite3.connect(tmp_path / "state.db")) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.commit()

    assert "another program" in await _refused(tmp_path / "state.db", notes)


async def test_a_newer_schema_is_refused_with_both_versions(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """An old program does not know what the new columns mean."""
    newer = [Migrations(slice="notes", steps=(*notes[0].steps, ("CREATE TABLE more (id INTEGER)",), ("CREATE TABLE most (id INTEGER)",)))]
    await _filled(tmp_path / "state.db", newer)

    said = await _refused(tmp_path / "state.db", notes)

    assert "version 3" in said
    assert "versions up to 1" in said


async def test_missing_steps_are_applied_and_rows_kept(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """The upgrade of a running installation; each step runs once."""
    path = tmp_path / "state.db"
    await _filled(path, notes)
    upgraded = [
        Migrations(slice="notes", steps=(*notes[0].steps, ("ALTER TABLE notes ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'",))),
        Migrations(slice="other", steps=(("CREATE TABLE others (id INTEGER)",),)),
    ]

    for _ in range(2):
        async with Database(path, upgraded) as database:
            rows = await database.read(lambda transaction: transaction.fetch_all("SELECT mood FROM notes"))
            assert rows == [("calm",)] * 200
            assert await database.read(lambda transaction: transaction.fetch_all("SELECT * FROM others")) == []


async def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """Half an upgrade would be a schema that no version knows. The error names slice and version."""
    path = tmp_path / "state.db"
    await _filled(path, notes)
    broken = [Migrations(slice="notes", steps=(*notes[0].steps, ("CREATE TABLE more (id INTEGER)",), ("NO SQL",)))]

    with pytest.raises(sqlite3.OperationalError) as caught:
        await Database(path, broken).__aenter__()

    assert caught.value.__notes__ == ["while bringing the notes tables to version 3"]
    async with Database(path, notes) as database:
        tables = await database.read(lambda transaction: transaction.fetch_all("SELECT name FROM sqlite_master WHERE name = 'more'"))
        assert tables == []


async def test_tables_of_a_slice_that_is_switched_off_are_no_obstacle(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """Features come and go; their rows wait."""
    other = Migrations(slice="other", steps=(("CREATE TABLE others (id INTEGER)",),))
    async with Database(tmp_path / "state.db", [*notes, other]):
        pass
    async with Database(tmp_path / "state.db", notes) as database:
        await database.write(add("fine"))


def test_a_slice_registers_once(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """Two lists for one slice would be applied over each other."""
    with pytest.raises(ValueError, match="twice"):
        Database(tmp_path / "state.db", [*notes, *notes])


async def test_files_are_for_the_hosts_user_alone(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """They hold everything that was said; also a file that was open to others is closed to them."""
    path = tmp_path / "made" / "state.db"
    async with Database(path, notes) as database:
        await database.write(add("private"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    path.chmod(0o644)
    async with Database(path, notes):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_folder_in_the_files_place_is_said(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """In words, not as SQLite's 'unable to open'."""
    (tmp_path / "state.db").mkdir()
    with pytest.raises(OperatorMustAct, match="is a folder"):
        await Database(tmp_path / "state.db", notes).__aenter__()


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """The parent is a file here; a missing permission looks the same."""
    (tmp_path / "file").touch()
    with pytest.raises(OperatorMustAct, match="cannot be opened"):
        await Database(tmp_path / "file" / "state.db", notes).__aenter__()


async def test_nothing_is_left_beside_the_file_after_a_clean_close(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """The log is folded in, so that the file alone can be copied."""
    path = tmp_path / "state.db"
    async with Database(path, notes) as database:
        await database.write(add("x"))
        await database.read(texts)

    assert [file.name for file in tmp_path.iterdir()] == ["state.db"]


async def test_a_large_file_is_opened_without_reading_all_of_it(
    tmp_path: Path, notes: Sequence[Migrations], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start must not take minutes; the damage is found by `check` and when it is met."""
    monkeypatch.setattr("features.storage.inspection._QUICK_CHECK_BYTES", 4096)
    path = tmp_path / "state.db"
    await _filled(path, notes)
    _garbage_in_page(path)

    async with Database(path, notes) as database:
        assert await database.check() != []


async def test_a_work_on_a_file_named_like_sqlites_memory_is_on_the_disk(
    tmp_path: Path, notes: Sequence[Migrations], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is a path, whatever SQLite makes of its letters."""
    monkeypatch.chdir(tmp_path)
    for expected in ([], ["kept"]):
        async with Database(Path(":memory:"), notes) as database:

            def work(transaction: Transaction) -> list[str]:
                seen = texts(transaction)
                add("kept")(transaction)
                return seen

            assert await database.write(work) == expected


async def test_a_connection_that_cannot_be_made_leaves_no_thread(tmp_path: Path) -> None:
    """Its thread is no daemon and would keep a failed start from exiting."""

    def refuse(_: sqlite3.Connection) -> None:
        raise LookupError("no")

    before = threading.active_count()
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        await open_connection(tmp_path / "missing" / "state.db", refuse)
    assert threading.active_count() == before
    with pytest.raises(LookupError):
        await open_connection(tmp_path / "state.db", refuse)

    assert threading.active_count() == before


async def test_a_start_that_is_cancelled_at_any_point_leaves_no_thread_and_a_good_file(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """An impatient operator presses Ctrl-C while the host comes up."""
    before = threading.active_count()
    for steps in itertools.count():
        path = tmp_path / f"{steps}.db"
        database = Database(path, notes)
        starting = asyncio.create_task(database.__aenter__())
        for _ in range(steps):
            await asyncio.wait({starting}, timeout=0.0005)
        starting.cancel()
        await asyncio.wait({starting})
        completed = not starting.cancelled()
        if completed:
            await database.__aexit__(None, None, None)
        assert threading.active_count() == before

        async with Database(path, notes) as again:
            await again.write(add("fine"))
            assert await again.check() == []
        if completed:
            break


async def test_before_an_upgrade_a_copy_is_made(tmp_path: Path) -> None:
    """The way back, should the new version be to nobody's liking; a start without an upgrade makes none."""
    path, copy = tmp_path / "state.db", tmp_path / "state.db.before-upgrade"
    one = Migrations(slice="a", steps=(("CREATE TABLE a (x)",),))
    two = Migrations(slice="a", steps=(*one.steps, ("ALTER TABLE a ADD COLUMN y",)))
    for _ in range(2):
        async with Database(path, [one]) as database:
            await database.write(lambda transaction: transaction.execute("INSERT INTO a VALUES (1)"))
    assert not copy.exists()
    async with Database(path, [two]):
        pass

    assert copy.stat().st_mode & 0o077 == 0
    async with Database(copy, [one]) as database:
        assert await database.read(lambda transaction: transaction.fetch_all("SELECT x FROM a")) == [(1,), (1,)]
