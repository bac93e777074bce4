"""Copies of a database in use."""

import asyncio
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from features.contracts.database import Migrations
from features.contracts.errors import OperatorMustAct
from features.storage import Database
from tests.features.storage.works import add, texts


async def test_a_backup_taken_while_writing_is_one_sound_state(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """It holds a beginning of what was written, whole, as a single private file."""
    target = tmp_path / "backups" / "copy.db"
    target.parent.mkdir()
    async with Database(tmp_path / "state.db", notes) as database:
        for number in range(50):
            await database.write(add(str(number)))
        writes = [asyncio.create_task(database.write(add(str(number)))) for number in range(50, 500)]
        await database.backup(target)
        await asyncio.gather(*writes)

    assert [file.name for file in target.parent.iterdir()] == ["copy.db"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    async with Database(target, notes) as copy:
        seen = await copy.read(texts)
        assert seen == [str(number) for number in range(len(seen))]
        assert len(seen) >= 50
        assert await copy.check() == []
        await copy.write(add("usable"))


async def test_a_backup_replaces_an_older_one_only_when_complete(tmp_path: Path, notes: Sequence[Migrations]) -> None:
    """A failed backup must not cost the last good one."""
    target = tmp_path / "copy.db"
    async with Database(tmp_path / "state.db", notes) as database:
        await database.write(add("first"))
        await database.backup(target)
        await database.write(add("second"))
        await database.backup(target)
        with pytest.raises(OperatorMustAct, match="cannot be written"):
            await database.backup(tmp_path / "missing" / "copy.db")
        with pytest.raises(OperatorMustAct, match="the database itself"):
            await database.backup(tmp_path / "state.db")

    async with Database(target, notes) as copy:
        assert await copy.read(texts) == ["first", "second"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "state.db"]
