"""No space: writes fail plainly, reads go on, and writing resumes by itself."""

import asyncio
import contextlib
import logging
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from features.contracts.database import Migrations, Transaction
from features.contracts.errors import OperatorMustAct
from features.storage import Database
from tests.features.storage.works import add, texts


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    if shutil.which("mount") is None:
        pytest.skip("no mount command")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _fill_up(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


async def test_a_full_disk_fails_the_write_and_nothing_else(
    small_disk: Path, notes: Sequence[Migrations], caplog: pytest.LogCaptureFixture
) -> None:
    """The host says so once, goes on reading, and writes again when there is space."""
    caplog.set_level(logging.INFO, "pumice.storage")
    async with Database(small_disk / "state.db", notes) as database:
        await database.write(add("before"))
        filler = small_disk / "filler"
        _fill_up(filler)

        for _ in range(3):
            with pytest.raises(OperatorMustAct, match=f"no space left to write {small_disk}"):
                await database.write(add("x" * 100_000))
        assert await database.read(texts) == ["before"]

        filler.unlink()
        await database.write(add("after"))

        assert await database.read(texts) == ["before", "after"]
        assert await database.check() == []
    assert [record.message for record in caplog.records] == ["database writing failed", "database writing again"]


async def test_a_disk_that_fills_up_in_a_batch_keeps_what_fits(small_disk: Path, notes: Sequence[Migrations]) -> None:
    """Each message that was said to be stored is, and only those that are not fail."""
    async with Database(small_disk / "state.db", notes) as database:
        sizes = [100_000] * 12
        results = await asyncio.gather(*(database.write(add("x" * size)) for size in sizes), return_exceptions=True)
        stored = [result for result in results if isinstance(result, int)]
        failed = [result for result in results if isinstance(result, OperatorMustAct)]

        assert len(stored) + len(failed) == 12
        assert stored
        assert failed
        assert len(await database.read(texts)) == len(stored)


async def test_a_database_at_its_size_limit_behaves_like_a_full_disk(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """The same through SQLite's own limit, which needs no small disk."""
    async with Database(tmp_path / "state.db", notes) as database:
        await database.write(add("before"))
        await database.write(lambda transaction: transaction.fetch_one("PRAGMA max_page_count = 10"))

        results = await asyncio.gather(
            database.write(add("small")), database.write(add("x" * 100_000)), database.write(add("tiny")), return_exceptions=True
        )
        assert isinstance(results[1], OperatorMustAct)
        assert await database.read(texts) == ["before", "small", "tiny"]

        await database.write(lambda transaction: transaction.fetch_one("PRAGMA max_page_count = 1000000"))
        await database.write(add("x" * 100_000))
        assert len(await database.read(texts)) == 4
        assert await database.check() == []


async def test_a_work_that_swallows_the_full_disk_keeps_nothing(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """SQLite has ended its transaction; what the work does next would otherwise be committed statement by statement."""

    def swallows(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO notes (text) VALUES ('first')")
        with contextlib.suppress(sqlite3.Error):
            transaction.execute("INSERT INTO notes (text) VALUES (?)", ("y" * 100_000,))
        transaction.execute("INSERT INTO notes (text) VALUES ('instead')")

    async with Database(tmp_path / "state.db", notes) as database:
        await database.write(lambda transaction: transaction.fetch_one("PRAGMA max_page_count = 10"))
        results = await asyncio.gather(database.write(add("small")), database.write(swallows), return_exceptions=True)

        assert isinstance(results[1], OperatorMustAct)
        assert await database.read(texts) == ["small"]
        with pytest.raises(OperatorMustAct):
            await database.write(swallows)
        assert await database.read(texts) == ["small"]
