"""The extensions of a running host: leases, decisions, loading again."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from features.contracts.errors import UserMustAct
from features.contracts.testing import FakeClock
from features.extensions import EXTENSION_MIGRATIONS, ExtensionCatalogue, ExtensionChoices, ExtensionLease, ExtensionLoader
from tests.bot.memory_database import MemoryDatabase

GOOD = "async def activate(api):\n    api.append('{}')\n"
PLACE = "telegram:1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The place's own."""
    folder = tmp_path / "workspace" / ".pumice" / "extensions"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """Where the whole host's extensions are."""
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "gate.py").write_text(GOOD.format("one"))
    return tmp_path / "hosts"


@pytest.fixture
def catalogue(hosts: Path) -> Iterator[ExtensionCatalogue]:
    database = MemoryDatabase(EXTENSION_MIGRATIONS)
    catalogue = ExtensionCatalogue(ExtensionLoader(), ExtensionChoices(database, FakeClock()), paths=[hosts], entry_points=False)
    yield catalogue
    catalogue.close()
    database.close()


def states(lease: ExtensionLease) -> dict[str, str]:
    return {extension.name: extension.state for extension in lease.all}


async def said(lease: ExtensionLease) -> list[str]:
    words: list[str] = []
    for spec in lease.specs:
        await spec.activate(words)  # type: ignore[arg-type]
    return words


def modules() -> int:
    return sum(name.startswith("_pumice_extension") for name in sys.modules)


async def test_a_places_own_run_once_trusted_and_again_when_trusted_again(catalogue: ExtensionCatalogue, folder: Path) -> None:
    """Every change of the content asks the owner anew."""
    await catalogue.load()
    (folder / "mine.py").write_text(GOOD.format("first"))
    lease = await catalogue.take(PLACE, folder, own=True)
    assert states(lease) == {"gate": "active", "mine": "untrusted"}
    assert [extension.name for extension in lease.news] == ["mine"]
    before = catalogue.version(PLACE)

    assert await catalogue.trust(PLACE, folder, lease.all[1].digest[:12], by="telegram:7") == "mine"

    assert catalogue.version(PLACE) != before
    trusted = await catalogue.take(PLACE, folder, own=True)
    assert (states(trusted)["mine"], await said(trusted), trusted.news) == ("active", ["one", "first"], ())
    elsewhere = await catalogue.take("telegram:2", folder, own=True)
    assert states(elsewhere)["mine"] == "untrusted"
    (folder / "mine.py").write_text(GOOD.format("second"))
    assert await catalogue.is_stale(trusted, folder)
    changed = await catalogue.take(PLACE, folder, own=True)
    assert (states(changed)["mine"], [extension.name for extension in changed.news]) == ("untrusted", ["mine"])
    again = await catalogue.take(PLACE, folder, own=True)
    assert again.news == (), "said once"
    assert not await catalogue.is_stale(again, folder)


async def test_trust_is_for_what_was_shown(catalogue: ExtensionCatalogue, folder: Path) -> None:
    """The file may be another one by the time that the button is pressed."""
    (folder / "mine.py").write_text(GOOD.format("shown"))
    lease = await catalogue.take(PLACE, folder, own=True)
    digest = lease.all[0].digest
    (folder / "mine.py").write_text(GOOD.format("swapped"))

    for stale in (digest, digest[:12], "", "ab"):
        with pytest.raises(UserMustAct, match="changed or taken away"):
            await catalogue.trust(PLACE, folder, stale, by="telegram:7")

    assert states(await catalogue.take(PLACE, folder, own=True)) == {"mine": "untrusted"}


async def test_what_cannot_run_is_not_trusted(catalogue: ExtensionCatalogue, folder: Path) -> None:
    (folder / "mine.py").write_text("def def")
    lease = await catalogue.take(PLACE, folder, own=True)

    assert states(lease) == {"mine": "failed"}
    with pytest.raises(UserMustAct, match=r"syntax error in mine\.py"):
        await catalogue.trust(PLACE, folder, lease.all[0].digest, by="telegram:7")


async def test_where_they_may_not_run_trust_does_not_help(catalogue: ExtensionCatalogue, folder: Path) -> None:
    """No sandbox, and others than owners talk there."""
    (folder / "mine.py").write_text(GOOD.format("x"))
    lease = await catalogue.take(PLACE, folder, own=False)
    await catalogue.trust(PLACE, folder, lease.all[0].digest, by="telegram:7")

    lease = await catalogue.take(PLACE, folder, own=False)

    assert states(lease) == {"mine": "untrusted"}
    assert "sandbox" in lease.all[0].reason


async def test_owners_switch_extensions_off_in_a_chat(catalogue: ExtensionCatalogue, folder: Path) -> None:
    """The host's and the chat's own; other chats keep them."""
    await catalogue.load()
    (folder / "mine.py").write_text(GOOD.format("x"))
    lease = await catalogue.take(PLACE, folder, own=True)
    await catalogue.trust(PLACE, folder, lease.all[1].digest, by="telegram:7")
    before = catalogue.version(PLACE), catalogue.version("telegram:2")
    await catalogue.disable(PLACE, "gate", by="telegram:7")
    await catalogue.disable(PLACE, "mine", by="telegram:7")

    assert states(await catalogue.take(PLACE, folder, own=True)) == {"gate": "disabled", "mine": "disabled"}
    assert states(await catalogue.take("telegram:2", folder.parent, own=True)) == {"gate": "active"}
    assert catalogue.version(PLACE) != before[0]
    assert catalogue.version("telegram:2") == before[1]
    await catalogue.enable(PLACE, "gate")
    assert states(await catalogue.take(PLACE, folder, own=True)) == {"gate": "active", "mine": "disabled"}


async def test_loading_again_takes_up_what_changed(catalogue: ExtensionCatalogue, hosts: Path, folder: Path) -> None:
    """New files, new contents, files that are gone; a session that is open keeps what it has."""
    (hosts / "old.py").write_text(GOOD.format("old"))
    await catalogue.load()
    open_one = await catalogue.take(PLACE, folder, own=True)
    version = catalogue.version(PLACE)
    (hosts / "gate.py").write_text(GOOD.format("two"))
    (hosts / "old.py").unlink()
    (hosts / "fresh.py").write_text(GOOD.format("fresh"))

    await catalogue.load()

    assert catalogue.version(PLACE) != version
    assert await said(open_one) == ["one", "old"]
    assert await said(await catalogue.take(PLACE, folder, own=True)) == ["fresh", "two"]


@pytest.mark.parametrize("broken", ["def def", "raise RuntimeError('boom')", "x = 1", "NAME = 5\n" + GOOD])
async def test_what_worked_stays_at_work_until_its_successor_does(
    catalogue: ExtensionCatalogue, hosts: Path, folder: Path, broken: str
) -> None:
    """A gate must not fall open because somebody saves half a line."""
    await catalogue.load()
    (hosts / "gate.py").write_text(broken)

    for _ in range(2):
        loaded = await catalogue.load()
        assert [(extension.name, extension.state) for extension in loaded.all] == [("gate", "active")]
        assert "its new version fails, so the one before is at work: " in loaded.all[0].reason
        assert await said(await catalogue.take(PLACE, folder, own=True)) == ["one"]

    (hosts / "gate.py").write_text(GOOD.format("mended"))
    loaded = await catalogue.load()
    assert loaded.all[0].reason == ""
    assert await said(await catalogue.take(PLACE, folder, own=True)) == ["mended"]


async def test_modules_go_with_the_last_that_works_with_them(catalogue: ExtensionCatalogue, hosts: Path, folder: Path) -> None:
    """A host that is reloaded a hundred times does not keep a hundred copies, and an open session keeps its own."""
    before = modules()
    await catalogue.load()
    (folder / "mine.py").write_text(GOOD.format("x"))
    untrusted = await catalogue.take(PLACE, folder, own=True)
    await catalogue.trust(PLACE, folder, untrusted.all[1].digest, by="telegram:7")
    untrusted.close()
    lease = await catalogue.take(PLACE, folder, own=True)
    assert modules() == before + 2

    for _ in range(5):
        await catalogue.load()

    assert modules() == before + 3
    lease.close()
    lease.close()
    assert modules() == before + 1
    (hosts / "gate.py").unlink()
    await catalogue.load()
    assert modules() == before
