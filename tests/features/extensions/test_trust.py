"""Decisions of owners about what may run in a place."""

from features.contracts.testing import FakeClock
from features.extensions import EXTENSION_MIGRATIONS, ExtensionTrust
from tests.bot.memory_database import MemoryDatabase


async def test_trust_is_about_one_content_in_one_place() -> None:
    """The same file in another chat is asked about there."""
    database = MemoryDatabase(EXTENSION_MIGRATIONS)
    trust = ExtensionTrust(database, FakeClock())

    await trust.trust("telegram:1", "aa", name="x", by="telegram:7")

    decisions = await ExtensionTrust(database, FakeClock()).decisions("telegram:1")
    assert {digest: (one.name, one.trusted_by, one.trusted_at) for digest, one in decisions.items()} == {
        "aa": ("x", "telegram:7", FakeClock().now())
    }
    assert await trust.decisions("telegram:2") == {}
    database.close()


async def test_what_an_extension_was_before_is_not_trusted_any_more() -> None:
    """Or an old version with a known hole could be put back."""
    database = MemoryDatabase(EXTENSION_MIGRATIONS)
    trust = ExtensionTrust(database, FakeClock())
    await trust.trust("telegram:1", "aa", name="x", by="telegram:7")
    await trust.trust("telegram:1", "cc", name="y", by="telegram:7")
    await trust.trust("telegram:1", "bb", name="x", by="telegram:7")

    assert set(await trust.decisions("telegram:1")) == {"bb", "cc"}
    assert await trust.forget("telegram:1", "bb")
    assert not await trust.forget("telegram:1", "bb")
    assert set(await trust.decisions("telegram:1")) == {"cc"}
    database.close()
