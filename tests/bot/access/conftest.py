"""A gate, people before it, and what they say."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from random import Random

import pytest

from bot.access import ACCESS_MIGRATIONS, Access
from bot.config.chat_sections import AccessSection
from features.contracts.chat import Address, InboundMessage, Person
from features.contracts.testing import FakeClock
from tests.bot.memory_database import MemoryDatabase

OWNER = "telegram:1"
STRANGER = "telegram:66"
GROUP = Address("telegram", "-100")


def says(text: str = "hello", by: str = STRANGER, *, name: str = "Eve", anonymous: bool = False, kind: str = "message") -> InboundMessage:
    """Something said in private."""
    return InboundMessage(
        key="1",
        address=Address("telegram", by.partition(":")[2]),
        sender=Person(id=by, name=name, anonymous=anonymous),
        text=text,
        sent_at=datetime(2026, 1, 5, tzinfo=UTC),
        kind="edit" if kind == "edit" else "press" if kind == "press" else "message",
    )


def says_in_group(
    text: str = "hello", by: str = STRANGER, *, addressed: bool = True, anonymous: bool = False, group: Address = GROUP
) -> InboundMessage:
    return InboundMessage(
        key="1",
        address=group,
        sender=Person(id=by, name="Eve", anonymous=anonymous),
        text=text,
        sent_at=datetime(2026, 1, 5, tzinfo=UTC),
        group=True,
        addressed=addressed,
    )


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def database() -> Iterator[MemoryDatabase]:
    memory = MemoryDatabase(ACCESS_MIGRATIONS)
    yield memory
    memory.close()


class Gates:
    """Makes gates over one database: another one is the host after a restart."""

    def __init__(self, database: MemoryDatabase, clock: FakeClock) -> None:
        self.database = database
        self._clock = clock
        self._seeds = count(1)

    async def open(self, options: AccessSection | None = None) -> Access:
        access = Access(options or AccessSection(owners=(OWNER,)), self.database, self._clock, Random(next(self._seeds)))
        await access.load()
        return access


@pytest.fixture
def gates(database: MemoryDatabase, clock: FakeClock) -> Gates:
    return Gates(database, clock)
