from collections.abc import Sequence

import pytest

from features.contracts.database import Migrations


@pytest.fixture
def notes() -> Sequence[Migrations]:
    """A slice with one table ``notes (id, text)``; ids are taken once."""
    return [Migrations(slice="notes", steps=(("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",),))]
