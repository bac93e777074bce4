"""Sessions as files for pi and for people, and their repair."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from features.contracts.errors import RetryLater
from features.contracts.messages import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from features.contracts.session_transfer import ExportFormat
from features.contracts.sessions import CompactionEntry, SessionLines
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import DatabaseSessionStore, MemorySessionStore, SessionManager, SessionTransfer
from features.sessions.testing import TIMESTAMP, append_message, assistant, user
from features.storage import Database

FORMS: tuple[ExportFormat, ...] = ("html", "md", "jsonl")


@pytest.fixture
def transfer(store: DatabaseSessionStore, tmp_path: Path) -> SessionTransfer:
    return SessionTransfer(store, originals=tmp_path / "damaged", clock=FakeClock(), ids=sequential_ids("made"))


async def session(store: DatabaseSessionStore, name: str = "Rome & back") -> SessionManager:
    return await SessionManager.create(store, "web:a", clock=FakeClock(), ids=sequential_ids("entry"), cwd="/", name=name)


async def test_where_a_session_goes_on_is_in_its_file(store: DatabaseSessionStore, transfer: SessionTransfer) -> None:
    """Exported twice it is the same file; imported it goes on there."""
    manager = await session(store)
    first = await append_message(manager, user("one"))
    await append_message(manager, user("two"))
    await manager.branch_to(first)
    exported = await transfer.export(manager.id)
    assert (await transfer.export(manager.id)).data == exported.data
    assert msgspec.json.decode(exported.data.splitlines()[-1])["parentId"] == first

    other = MemorySessionStore()
    back = SessionTransfer(other, originals=Path("/nowhere"), clock=FakeClock(), ids=sequential_ids())
    imported = await back.import_file(exported.data, "web:b")
    assert (await other.load(imported.id))[2] == first
    assert (await back.export(imported.id)).data == exported.data
    assert exported.name == f"Rome-back-{manager.id[-8:]}.jsonl"


async def test_a_page_shows_everything_and_runs_nothing(store: DatabaseSessionStore, transfer: SessionTransfer) -> None:
    """What strangers and tools wrote is text; pictures are those of known kinds; other branches are folded in."""
    manager = await session(store, "<b>Rome</b>")
    evil = "<script>alert(1)</script>"
    picture = ImageBlock(data="aGk=", mime_type="image/png")
    bad = ImageBlock(data='"><script>', mime_type="image/svg+xml")
    first = await append_message(manager, UserMessage(content=[TextBlock(text=evil), picture, bad], timestamp=1))
    await manager.set_label(first, "<i>start</i>")
    call = ToolCall(id="c", name="bash", arguments={"command": evil})
    answer = AssistantMessage(
        content=[ThinkingBlock(thinking=evil), call], api="x", provider="p", model="m", usage=Usage(), stop_reason="error", timestamp=2,
        error_message=evil,
    )  # fmt: skip
    await append_message(manager, answer)
    await append_message(
        manager, ToolResultMessage(tool_call_id="c", tool_name=evil, content=[TextBlock(text="out")], is_error=False, timestamp=3)
    )
    await manager.branch_to(first)
    await append_message(manager, assistant("the other way"))
    exported = await transfer.export(manager.id, "html")
    page = exported.data.decode()

    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert page.count("&lt;script&gt;") == 6
    assert 'src="data:image/png;base64,aGk="' in page
    assert "a picture that cannot be shown" in page
    assert page.index("Another branch") < page.index("the other way")
    assert page.count("<details>") == page.count("</details>")
    assert exported.name.endswith(".html")


async def test_markdown_is_the_present_branch(store: DatabaseSessionStore, transfer: SessionTransfer) -> None:
    """A fence is longer than what is in it."""
    manager = await session(store)
    first = await append_message(manager, user("one"))
    await append_message(manager, user("left behind"))
    await manager.branch_to(first)
    await append_message(
        manager, ToolResultMessage(tool_call_id="c", tool_name="read", content=[TextBlock(text="````\nx")], is_error=False, timestamp=3)
    )
    text = (await transfer.export(manager.id, "md")).data.decode()

    assert text.startswith("# Rome & back\n")
    assert "left behind" not in text
    assert "`````\n````\nx\n`````" in text


async def test_a_tree_as_deep_as_it_is_long_is_exported(store: DatabaseSessionStore, transfer: SessionTransfer) -> None:
    """A conversation of thousands of messages is one chain; nothing recurses down it."""
    manager = await session(store)
    await manager.append([manager.new_message_entry(user(str(number))) for number in range(3000)])
    for form in FORMS:
        assert b"2999" in (await transfer.export(manager.id, form)).data


async def test_a_session_that_is_not_there_is_a_key_error(transfer: SessionTransfer) -> None:
    """For every form and for the check."""
    for form in FORMS:
        with pytest.raises(KeyError):
            await transfer.export("gone", form)
    with pytest.raises(KeyError):
        await transfer.check("gone")


async def damage(database: Database, *statements: tuple[str, Sequence[str]]) -> None:
    for sql, parameters in statements:
        await database.write(lambda t, sql=sql, parameters=parameters: t.execute(sql, tuple(parameters)))  # type: ignore[misc]


async def test_damage_is_repaired_and_what_was_there_is_kept(
    store: DatabaseSessionStore, database: Database, transfer: SessionTransfer, tmp_path: Path
) -> None:
    """Entries that cannot be read are left out and joined over, as opening the session does; a lost header is made anew."""
    manager = await session(store, "")
    ids = [await append_message(manager, user(text)) for text in ("one", "two", "three")]
    compaction = CompactionEntry(id="c", parent_id=ids[2], timestamp=TIMESTAMP, summary="s", first_kept_entry_id=ids[1], tokens_before=1)
    await manager.append([compaction])
    assert (await transfer.check(manager.id)).problems == []
    await damage(
        database,
        ("UPDATE entries SET json = '{torn' WHERE id = ?", [ids[1]]),
        ("UPDATE sessions SET header = ? WHERE id = ?", ["no header", manager.id]),
    )
    looked = await transfer.check(manager.id, repair=False)
    assert looked.problems == ["the header cannot be read", "1 entry cannot be read"]
    loaded = await store.load(manager.id)
    checked = await transfer.check(manager.id)

    assert checked.problems == looked.problems
    assert checked.original is not None
    assert Path(checked.original).read_text().splitlines()[2] == "{torn"
    assert (await transfer.check(manager.id)).problems == []
    assert await store.load(manager.id) == loaded
    assert [entry.parent_id for entry in loaded[1]] == [None, ids[0], ids[2]]


async def test_circles_are_cut(store: DatabaseSessionStore, database: Database, transfer: SessionTransfer) -> None:
    """They end a branch when it is read, and a file with them could not be read elsewhere."""
    manager = await session(store, "")
    ids = [await append_message(manager, user(text)) for text in ("one", "two")]
    text = (await store.lines(manager.id)).entries[0].replace('"parentId":null', f'"parentId":"{ids[1]}"')
    await damage(database, ("UPDATE entries SET json = ? WHERE id = ?", [text, ids[0]]))

    assert (await transfer.check(manager.id)).problems == ["1 circle of entries that follow each other"]
    assert (await transfer.check(manager.id)).problems == []


async def test_what_is_appended_during_a_repair_is_not_lost(tmp_path: Path) -> None:
    """The repair is given up, and nothing is left of it."""

    class Busy(MemorySessionStore):
        async def replace(self, session_id: str, lines: SessionLines, *, was: SessionLines) -> None:
            raise ValueError("changed")

        async def lines(self, session_id: str) -> SessionLines:
            return SessionLines(header="torn", entries=[], leaf=None)

    store = Busy()
    await SessionManager.create(store, "web:a", clock=FakeClock(), ids=lambda: "one", cwd="/")
    transfer = SessionTransfer(store, originals=tmp_path, clock=FakeClock(), ids=sequential_ids())
    with pytest.raises(RetryLater, match="Check it again"):
        await transfer.check("one")

    assert list(tmp_path.iterdir()) == []
