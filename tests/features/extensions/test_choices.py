"""Decisions of owners about what may run in a place."""

from collections.abc import Iterator

import pytest

from features.contracts.testing import FakeClock
from features.extensions import EXTENSION_MIGRATIONS, ExtensionChoices
from tests.bot.memory_database import MemoryDatabase


@pytest.fixture
def database() -> Iterator[MemoryDatabase]:
    database = MemoryDatabase(EXTENSION_MIGRATIONS)
    yield database
    database.close()


async def test_trust_is_about_one_content_in_one_place(database: MemoryDatabase) -> None:
    """The same file in another chat is asked about there."""
    await ExtensionChoices(database, FakeClock()).trust("telegram:1", "aa", name="x", by="telegram:7")

    choices = ExtensionChoices(database, FakeClock())
    trusted = (await choices.of("telegram:1")).trusted
    assert {digest: (one.name, one.trusted_by, one.trusted_at) for digest, one in trusted.items()} == {
        "aa": ("x", "telegram:7", FakeClock().now())
    }
    assert (await choices.of("telegram:2")).trusted == {}
    assert await choices.trusted_anywhere() == {("telegram:1", "aa")}


async def test_what_an_extension_was_before_is_not_trusted_any_more(database: MemoryDatabase) -> None:
    """Or an old version with a known hole could be put back."""
    choices = ExtensionChoices(database, FakeClock())
    await choices.trust("telegram:1", "aa", name="x", by="telegram:7")
    await choices.trust("telegram:1", "cc", name="y", by="telegram:7")
    await choices.trust("telegram:1", "bb", name="x", by="telegram:7")

    assert set((await choices.of("telegram:1")).trusted) == {"bb", "cc"}


async def test_disabling_holds_in_one_place_until_it_is_enabled_or_trusted_anew(database: MemoryDatabase) -> None:
    """Twice is once; and whoever trusts a new version wants it to run."""
    choices = ExtensionChoices(database, FakeClock())
    for name in ("x", "x", "y"):
        await choices.disable("telegram:1", name, by="telegram:7")

    assert (await choices.of("telegram:1")).disabled == {"x", "y"}
    assert (await choices.of("telegram:2")).disabled == frozenset()
    await choices.enable("telegram:1", "x")
    await choices.trust("telegram:1", "aa", name="y", by="telegram:7")
    assert (await choices.of("telegram:1")).disabled == frozenset()
