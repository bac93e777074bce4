"""A real session of pi, of format version 1 and 1,003 lines, against the figures that pi itself comes to."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from features.contracts.messages import AssistantMessage, CompactionSummaryMessage, UserMessage
from features.contracts.sessions import CompactionEntry, MessageEntry
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import DatabaseSessionStore, MemorySessionStore, SessionManager, SessionTransfer

FILE = Path(__file__).parents[4] / "shared/cases/pi-sessions/before-compaction.jsonl"


@pytest.fixture
def data() -> bytes:
    if not FILE.is_file():
        pytest.skip(f"{FILE} is not there: pi's own session files are kept beside this project")
    return FILE.read_bytes()


def transfer(store: DatabaseSessionStore | MemorySessionStore, folder: Path) -> SessionTransfer:
    return SessionTransfer(store, originals=folder / "originals", clock=FakeClock(), ids=sequential_ids("id"))


async def test_it_is_imported_and_migrated_as_pi_does(data: bytes, store: DatabaseSessionStore, tmp_path: Path) -> None:
    """Every entry, in a chain; compactions name the entries whose lines they counted."""
    imported = await transfer(store, tmp_path).import_file(data, "web:a")
    header, entries, leaf = await store.load(imported.id)
    types = Counter(type(entry).__struct_config__.tag for entry in entries)
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    roles = Counter(type(message).__struct_config__.tag for message in messages)

    assert imported.id == header.id == "ffae836b-9420-4060-ac13-7745215f90ff"
    assert (len(entries), imported.entries, header.version, leaf) == (1002, 1002, 3, entries[-1].id)
    assert types == {"message": 990, "thinking_level_change": 5, "model_change": 5, "compaction": 2}
    assert roles == {"user": 55, "assistant": 484, "toolResult": 448, "bashExecution": 3}
    assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries[:-1])]
    assert len(imported.warnings) == 1
    assert "version 1" in imported.warnings[0]
    found = [(index, entry) for index, entry in enumerate(entries) if isinstance(entry, CompactionEntry)]
    assert [(index, entry.tokens_before, len(entry.summary)) for index, entry in found] == [(358, 175004, 4291), (627, 185014, 3649)]
    assert [entry.first_kept_entry_id for _, entry in found] == [entries[292].id, entries[550].id]
    for index in (292, 550):
        kept = entries[index]
        assert isinstance(kept, MessageEntry)
        assert isinstance(kept.message, UserMessage)
    assert all("firstKeptEntryIndex" not in msgspec.json.decode(line) for line in (await store.lines(imported.id)).entries)


async def test_its_context_is_the_one_that_pi_builds(data: bytes, store: DatabaseSessionStore, tmp_path: Path) -> None:
    """One summary, 77 messages that were kept and 368 after it."""
    imported = await transfer(store, tmp_path).import_file(data, "web:a")
    manager = await SessionManager.open(store, imported.id, clock=FakeClock(), ids=sequential_ids())

    assert len(manager.messages) == 446
    assert isinstance(manager.messages[0], CompactionSummaryMessage)
    assert isinstance(manager.messages[1], UserMessage)
    assert (manager.thinking, manager.model) == ("off", ("anthropic", "claude-opus-4-5"))
    last_usage = manager.entries[999]
    assert isinstance(last_usage, MessageEntry)
    assert isinstance(last_usage.message, AssistantMessage)
    assert last_usage.message.usage.total_tokens == 168018


async def test_it_is_exported_and_imported_again_without_a_difference(data: bytes, store: DatabaseSessionStore, tmp_path: Path) -> None:
    """What pi would load is what we had; the second time to the byte."""
    out = transfer(store, tmp_path)
    first = await out.import_file(data, "web:a")
    exported = await out.export(first.id)
    other = MemorySessionStore()
    back = transfer(other, tmp_path)
    again = await back.import_file(exported.data, "web:b")

    assert (again.id, again.warnings) == (first.id, [])
    assert await other.load(first.id) == await store.load(first.id)
    assert (await back.export(first.id)).data == exported.data
    theirs = [msgspec.json.decode(line) for line in data.splitlines()]
    ours = [msgspec.json.decode(line) for line in exported.data.splitlines()]
    for before, after in zip(theirs, ours, strict=True):
        left = {key: value for key, value in after.items() if key not in ("id", "parentId", "firstKeptEntryId", "version")}
        assert left == {key: value for key, value in before.items() if key not in ("id", "firstKeptEntryIndex")}
