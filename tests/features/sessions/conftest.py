from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore
from features.storage import Database


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(tmp_path / "state.db", [SESSION_MIGRATIONS]) as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> DatabaseSessionStore:
    return DatabaseSessionStore(database)
