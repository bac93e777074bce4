"""What every ``SessionStore`` promises, run against each of them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from features.contracts.messages import (
    AssistantMessage,
    Cost,
    CustomMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    SessionInfoEntry,
    SessionLines,
    SessionStore,
    ThinkingLevelChangeEntry,
)
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore, JsonlSessionStore, MemorySessionStore
from features.sessions.testing import TIMESTAMP, assistant, header, said
from features.storage import Database


@pytest.fixture(params=["memory", "files", "database"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionStore]:
    if request.param == "memory":
        yield MemorySessionStore()
        return
    if request.param == "files":
        async with JsonlSessionStore.in_folder(tmp_path / "sessions", clock=FakeClock(), ids=sequential_ids()) as files:
            yield files
        return
    async with Database(tmp_path / "state.db", [SESSION_MIGRATIONS]) as database:
        yield DatabaseSessionStore(database)


async def test_a_new_session_is_empty_and_current(store: SessionStore) -> None:
    """A scope talks in the session made last."""
    assert await store.current("web:a") is None
    await store.create("web:a", header("one"))
    await store.create("web:a", header("two"))
    await store.create("web:a", header("three"), make_current=False)

    assert await store.load("one") == (header("one"), [], None)
    assert await store.current("web:a") == "two"
    assert await store.current("web:b") is None


async def test_a_session_id_is_taken_once(store: SessionStore) -> None:
    """Two chats must never share a session, and an existing one is never emptied."""
    await store.create("web:a", header("one"))
    await store.append("one", [said("e1", "hello")], leaf="e1")
    with pytest.raises(ValueError, match="there already"):
        await store.create("web:b", header("one"))

    assert (await store.load("one"))[1] == [said("e1", "hello")]
    assert await store.current("web:b") is None


def _every_kind() -> list[SessionEntry]:
    place: dict[str, Any] = {"parent_id": "before", "timestamp": TIMESTAMP}
    image = ImageBlock(data="aGk=", mime_type="image/png")
    usage = Usage(input=1, output=2, cache_read=3, cache_write=4, total_tokens=10, cost=Cost(total=0.25))
    answer = AssistantMessage(
        content=[
            ThinkingBlock(thinking="hm", thinking_signature="c2ln", redacted=True),
            TextBlock(text="so \x00 \u2028 😀", text_signature="t"),
            ToolCall(id="c", name="bash", arguments={"command": "ls", "deep": [{"n": 10**30, "f": 0.1}, None]}),
            ToolCall(id="d", name="bash", arguments={}, invalid_arguments="{broken"),
        ],
        api="x",
        provider="p",
        model="m",
        usage=usage,
        stop_reason="toolUse",
        timestamp=5,
        error_message="none",
    )
    result = ToolResultMessage(tool_call_id="c", tool_name="bash", content=[TextBlock(text="out"), image], is_error=True, timestamp=6)
    return [
        MessageEntry(id="1", parent_id=None, timestamp=TIMESTAMP, message=UserMessage(content=[TextBlock(text="a"), image], timestamp=4)),
        MessageEntry(id="2", message=answer, **place),
        MessageEntry(id="3", message=result, **place),
        MessageEntry(id="4", message=CustomMessage(custom_type="c", content="x", display=True, timestamp=7, details=[1]), **place),
        ModelChangeEntry(id="5", provider="p", model_id="m", **place),
        ThinkingLevelChangeEntry(id="6", thinking_level="xhigh", **place),
        CompactionEntry(id="7", summary="s", first_kept_entry_id="2", tokens_before=9, details={"files": []}, from_hook=True, **place),
        BranchSummaryEntry(id="8", from_id="root", summary="b", **place),
        CustomEntry(id="9", custom_type="goal", data={"done": False}, **place),
        CustomMessageEntry(id="10", custom_type="note", content=[TextBlock(text="n")], display=False, **place),
        LabelEntry(id="11", target_id="1", label="start", **place),
        LabelEntry(id="12", target_id="1", **place),
        SessionInfoEntry(id="13", name="named", **place),
    ]


async def test_every_kind_of_entry_comes_back_as_it_was(store: SessionStore) -> None:
    """In the order of the appends, whatever their parents are."""
    entries = _every_kind()
    await store.create("web:a", header("one"))
    await store.append("one", entries[:6], leaf="6")
    await store.append("one", entries[6:], leaf="13")

    assert await store.load("one") == (header("one"), entries, "13")


async def test_an_append_is_all_or_nothing_and_changes_no_entry(store: SessionStore) -> None:
    """An id that is taken refuses the whole append; leaf and list are as before."""
    await store.create("web:a", header("one"))
    await store.append("one", [said("e1", "first")], leaf="e1")
    for clash in ([said("e2", "new"), said("e1", "other")], [said("e2", "new"), said("e2", "twice")]):
        with pytest.raises(ValueError, match="there already"):
            await store.append("one", clash, leaf="e2")

    assert await store.load("one") == (header("one"), [said("e1", "first")], "e1")
    assert (await store.list())[0].message_count == 1


async def test_sessions_may_use_the_same_entry_ids(store: SessionStore) -> None:
    """Ids are unique within a session only; an imported copy keeps its ids."""
    for session_id in ("one", "two"):
        await store.create("web:a", header(session_id))
        await store.append(session_id, [said("e1", session_id)], leaf="e1")

    assert (await store.load("one"))[1] == [said("e1", "one")]
    assert (await store.load("two"))[1] == [said("e1", "two")]


async def test_the_leaf_moves_without_an_entry(store: SessionStore) -> None:
    """A branch that was chosen is chosen after a restart too; None is before the first entry."""
    await store.create("web:a", header("one"))
    await store.append("one", [said("e1", "a"), said("e2", "b", parent="e1")], leaf="e2")
    for leaf in ("e1", None, "e2"):
        await store.set_leaf("one", leaf)
        assert (await store.load("one"))[2] == leaf

    with pytest.raises(KeyError):
        await store.set_leaf("one", "elsewhere")
    assert (await store.load("one"))[2] == "e2"


async def test_a_session_that_is_not_there_is_a_key_error(store: SessionStore) -> None:
    """For every call that names one; nothing is made by the way."""
    for call in (
        store.load("gone"),
        store.append("gone", [said("e1", "a")], leaf="e1"),
        store.append("gone", [], leaf=None),
        store.set_leaf("gone", None),
        store.make_current("web:a", "gone"),
    ):
        with pytest.raises(KeyError):
            await call

    assert await store.list() == []


async def test_a_deleted_session_is_gone_for_good(store: SessionStore) -> None:
    """Entries, list and current; a run that still writes to it is told."""
    await store.create("web:a", header("one"))
    await store.append("one", [said("e1", "a")], leaf="e1")

    assert await store.delete("one")
    assert not await store.delete("one")
    assert await store.current("web:a") is None
    assert await store.list("web:a") == []
    with pytest.raises(KeyError):
        await store.append("one", [said("e2", "b")], leaf="e2")

    await store.create("web:a", header("one"))
    assert await store.load("one") == (header("one"), [], None)


async def test_deleting_another_session_leaves_the_current_one(store: SessionStore) -> None:
    """The chat goes on where it was."""
    await store.create("web:a", header("one"))
    await store.create("web:a", header("two"))
    await store.delete("one")

    assert await store.current("web:a") == "two"


async def test_a_scope_takes_up_only_its_own_sessions(store: SessionStore) -> None:
    """Another chat's conversation must not appear here."""
    await store.create("web:a", header("mine"))
    await store.create("web:a", header("newer"))
    await store.create("web:b", header("theirs"))
    await store.make_current("web:a", "mine")
    with pytest.raises(KeyError):
        await store.make_current("web:a", "theirs")

    assert await store.current("web:a") == "mine"
    assert await store.current("web:b") == "theirs"
    assert {summary.id for summary in await store.list("web:a")} == {"mine", "newer"}
    assert await store.list("web:") == []


async def test_a_list_shows_what_the_entries_said(store: SessionStore) -> None:
    """Last changed first, without reading any entry."""
    await store.create("web:a", header("one", timestamp="2026-01-01T00:00:00Z"))
    await store.create("web:b", header("two", timestamp="2026-01-02T00:00:00.000+01:00"))
    place: dict[str, Any] = {"parent_id": None, "timestamp": "2026-01-03T10:00:00.123Z"}
    answer = MessageEntry(id="0", message=assistant("welcome"), **place)
    first = said("1", "  hello\n\n" + "world " * 100, timestamp="2026-01-03T11:00:00Z")
    await store.append("one", [answer, first, said("2", "second", timestamp="2026-01-03T12:00:00.500Z")], leaf="2")
    await store.append("one", [SessionInfoEntry(id="3", name="Plans", parent_id="2", timestamp="no time")], leaf="3")

    newest, oldest = await store.list()

    assert (newest.id, newest.scope, newest.name, newest.message_count) == ("one", "web:a", "Plans", 3)
    assert newest.first_message == ("hello " + "world " * 100)[:200]
    assert newest.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert newest.modified_at == datetime(2026, 1, 3, 12, 0, 0, 500_000, tzinfo=UTC)
    assert (oldest.id, oldest.name, oldest.message_count, oldest.first_message) == ("two", "", 0, "")
    assert oldest.created_at == oldest.modified_at == datetime(2026, 1, 1, 23, tzinfo=UTC)


async def test_a_summary_is_what_a_list_has_of_the_session(store: SessionStore) -> None:
    """One session is looked up without reading all others, and one that is gone is no error."""
    await store.create("web:a", header("one"))
    await store.create("web:b", header("two"))
    await store.append("one", [said("1", "hello")], leaf="1")

    assert await store.summary("one") == next(summary for summary in await store.list() if summary.id == "one")
    assert await store.summary("nobody") is None


async def test_a_list_is_limited(store: SessionStore) -> None:
    """A chat may have thousands of sessions."""
    for number in range(5):
        await store.create("web:a", header(str(number), timestamp=f"2026-01-0{number + 1}T00:00:00Z"))

    assert [summary.id for summary in await store.list("web:a", limit=2)] == ["4", "3"]
    assert await store.list("web:a", limit=0) == []
    assert len(await store.list()) == 5


async def test_a_name_can_be_taken_away(store: SessionStore) -> None:
    """An empty name is a name too, not 'no change'."""
    place: dict[str, Any] = {"parent_id": None, "timestamp": TIMESTAMP}
    await store.create("web:a", header("one"))
    await store.append("one", [SessionInfoEntry(id="1", name="x", **place), SessionInfoEntry(id="2", name="", **place)], leaf="2")

    assert (await store.list())[0].name == ""


async def test_lone_surrogates_become_replacement_characters(store: SessionStore) -> None:
    """Neither JSON in UTF-8 nor a provider takes them; the rest of the message must survive."""
    await store.create("web:a", header("one"))
    broken = MessageEntry(
        id="1",
        parent_id=None,
        timestamp=TIMESTAMP,
        message=AssistantMessage(
            content=[TextBlock(text="a\ud83d\ude00\udfffb"), ToolCall(id="c", name="n", arguments={"k\ud800": ["\ud800"]})],
            api="x",
            provider="p",
            model="m",
            usage=Usage(),
            stop_reason="stop",
            timestamp=1,
        ),
    )
    await store.append("one", [broken, said("2", "\ud800 hi")], leaf="2")

    _, entries, _ = await store.load("one")
    message = entries[0].message if isinstance(entries[0], MessageEntry) else None

    assert isinstance(message, AssistantMessage)
    assert message.content == [TextBlock(text="a😀\ufffdb"), ToolCall(id="c", name="n", arguments={"k\ufffd": ["\ufffd"]})]
    assert (await store.list())[0].first_message == "\ufffd hi"


async def test_details_that_json_cannot_hold_do_not_lose_the_message(store: SessionStore) -> None:
    """A tool may put anything there; it is for people to look at."""
    result = ToolResultMessage(tool_call_id="c", tool_name="t", content=[], is_error=False, timestamp=1, details={"path": Path("/x")})
    await store.create("web:a", header("one"))
    await store.append("one", [MessageEntry(id="1", parent_id=None, timestamp=TIMESTAMP, message=result)], leaf="1")

    _, (entry,), _ = await store.load("one")

    assert isinstance(entry, MessageEntry)
    assert isinstance(entry.message, ToolResultMessage)
    assert str(entry.message.details["path"]) == "/x"


async def test_appends_at_the_same_time_are_all_kept(store: SessionStore) -> None:
    """Each session's entries in the order of its appends."""
    for session_id in ("one", "two"):
        await store.create("web:a", header(session_id))
    await asyncio.gather(
        *(store.append(session_id, [said(str(number), "x")], leaf=str(number)) for number in range(50) for session_id in ("one", "two"))
    )

    for session_id in ("one", "two"):
        _, entries, leaf = await store.load(session_id)
        assert [entry.id for entry in entries] == [str(number) for number in range(50)]
        assert leaf == "49"


async def test_a_header_comes_back_with_all_its_fields(store: SessionStore) -> None:
    """A fork names the session that it came from."""
    forked = msgspec.structs.replace(header("one"), parent_session="zero")
    await store.create("web:a", forked, make_current=False)

    assert (await store.load("one"))[0] == forked
    assert await store.current("web:a") is None


_HEADER_LINE = '{"type": "session", "version": 3, "id": "elsewhere", "timestamp": "2026-01-05T09:00:00Z", "cwd": "/", "x": 1.0}'
_ENTRY_LINES = [
    '{"type":"message","id":"e1","parentId":null,"timestamp":"","message":{"role":"user","content":"hi \\ud800","timestamp":1e3},"x":1.50}',
    '{"type":"novelty","id":"e2","parentId":"e1","timestamp":"2026-01-05T09:00:02.000Z","n":1E400}\r\n',
    '{ "id" : "e3", "type":"session_info", "parentId":"e2", "timestamp":"2026-01-05T09:00:03.000Z", "name":"Rome" }',
]


async def test_lines_that_were_taken_in_come_out_as_they_went_in(store: SessionStore) -> None:
    """Fields of other programs, numbers in their form, escaped lone surrogates, kinds that are not known: nothing is lost or rewritten."""
    lines = SessionLines(header=_HEADER_LINE, entries=_ENTRY_LINES, leaf="e3")
    await store.take_in("web:a", "mine", lines)

    assert await store.lines("mine") == lines
    header_read, entries, leaf = await store.load("mine")
    assert (header_read.id, leaf) == ("mine", "e3")
    assert [entry.id for entry in entries] == ["e1", "e2", "e3"]
    assert isinstance(entries[0], MessageEntry)
    assert entries[0].message == UserMessage(content="hi \ufffd", timestamp=1000)
    assert await store.current("web:a") is None
    summary = await store.summary("mine")
    assert summary is not None
    assert (summary.name, summary.message_count, summary.first_message) == ("Rome", 1, "hi \ufffd")


async def test_what_is_appended_to_lines_leaves_them_alone(store: SessionStore) -> None:
    """An imported session goes on, and its beginning still is what it was."""
    await store.take_in("web:a", "mine", SessionLines(header=_HEADER_LINE, entries=_ENTRY_LINES, leaf="e3"))
    await store.append("mine", [said("e4", "more", parent="e3")], leaf="e4")

    lines = await store.lines("mine")
    assert (lines.header, list(lines.entries[:3]), lines.leaf) == (_HEADER_LINE, _ENTRY_LINES, "e4")
    assert msgspec.json.decode(lines.entries[3])["message"]["content"] == "more"


async def test_a_session_is_taken_in_as_a_whole_or_not_at_all(store: SessionStore) -> None:
    """An id that is taken, a line that is none, an entry that comes twice."""
    await store.create("web:a", header("one"))
    for session_id, entries, leaf in (
        ("one", _ENTRY_LINES, "e3"),
        ("two", [*_ENTRY_LINES, "{"], "e3"),
        ("two", [*_ENTRY_LINES, _ENTRY_LINES[0]], "e3"),
        ("two", _ENTRY_LINES, "nowhere"),
    ):
        with pytest.raises(ValueError, match=r"there|read"):
            await store.take_in("web:b", session_id, SessionLines(header=_HEADER_LINE, entries=entries, leaf=leaf))

    assert await store.load("one") == (header("one"), [], None)
    assert await store.list("web:b") == []


async def test_lines_are_replaced_only_where_nothing_was_appended_meanwhile(store: SessionStore) -> None:
    """A repair must not cost what was said while it was made."""
    await store.take_in("web:a", "mine", SessionLines(header=_HEADER_LINE, entries=_ENTRY_LINES, leaf="e3"))
    was = await store.lines("mine")
    shorter = SessionLines(header=_HEADER_LINE, entries=_ENTRY_LINES[:1], leaf="e1")
    await store.append("mine", [said("e4", "more", parent="e3")], leaf="e4")
    with pytest.raises(ValueError, match="meanwhile"):
        await store.replace("mine", shorter, was=was)
    assert (await store.load("mine"))[2] == "e4"

    await store.replace("mine", shorter, was=await store.lines("mine"))
    assert await store.lines("mine") == shorter
    assert [entry.id for entry in (await store.load("mine"))[1]] == ["e1"]
    summary = await store.summary("mine")
    assert summary is not None
    assert (summary.name, summary.message_count) == ("", 1)
    with pytest.raises(KeyError):
        await store.replace("gone", shorter, was=was)


async def test_lines_of_what_was_appended_are_those_that_pi_reads(store: SessionStore) -> None:
    """Also where the conversation goes on elsewhere than behind the last entry."""
    await store.create("web:a", header("one"))
    await store.append("one", [said("e1", "a"), said("e2", "b", parent="e1")], leaf="e2")
    await store.set_leaf("one", "e1")
    lines = await store.lines("one")

    first = msgspec.json.decode(lines.header)
    assert (first["type"], first["version"], first["id"]) == ("session", 3, "one")
    assert msgspec.json.decode(lines.entries[0]) == {
        "type": "message",
        "id": "e1",
        "parentId": None,
        "timestamp": TIMESTAMP,
        "message": {"role": "user", "content": "a", "timestamp": 1},
    }
    assert lines.leaf == "e1"
