"""Sessions as files: what is on the disk, whose it is, and what is made of damage."""

import asyncio
import resource
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from features.contracts.errors import OperatorMustAct, UserMustAct
from features.contracts.messages import UserMessage
from features.contracts.sessions import MessageEntry
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import JsonlSessionStore, SessionManager
from features.sessions.testing import append_message, assistant, header, said, user


def in_folder(folder: Path) -> JsonlSessionStore:
    return JsonlSessionStore.in_folder(folder, clock=FakeClock(), ids=sequential_ids("id"))


def on_file(path: Path) -> JsonlSessionStore:
    return JsonlSessionStore.on_file(path, "console:main", cwd="/work", clock=FakeClock(), ids=sequential_ids("id"))


async def opened(store: JsonlSessionStore) -> SessionManager:
    current = await store.current("console:main")
    assert current is not None
    return await SessionManager.open(store, current, clock=FakeClock(), ids=sequential_ids("entry"))


async def test_a_file_is_made_and_gone_on_with(tmp_path: Path) -> None:
    """Every line is on the disk before it is seen, and another process finds it."""
    path = tmp_path / "talk.jsonl"
    async with on_file(path) as store:
        manager = await opened(store)
        await append_message(manager, user("hello"))
        lines = path.read_text().splitlines()
    assert msgspec.json.decode(lines[0]) | {"id": ""} == {
        "type": "session",
        "version": 3,
        "id": "",
        "timestamp": "2026-01-05T09:00:00.000Z",
        "cwd": "/work",
    }
    assert [msgspec.json.decode(line)["message"]["content"] for line in lines[1:]] == ["hello"]

    async with on_file(path) as store:
        manager = await opened(store)
        await append_message(manager, assistant("hi"))
        assert manager.messages == [user("hello"), assistant("hi")]
        assert store.warnings == ()
    assert list(tmp_path.iterdir()) == [path]


async def test_where_a_conversation_goes_on_is_in_the_file(tmp_path: Path) -> None:
    """pi goes on behind the last line: that one hangs where the conversation does."""
    path = tmp_path / "talk.jsonl"
    async with on_file(path) as store:
        manager = await opened(store)
        first = await append_message(manager, user("one"))
        await append_message(manager, user("two"))
        await manager.branch_to(first)
        assert msgspec.json.decode(path.read_text().splitlines()[-1])["parentId"] == first
        await manager.branch_to(None)
        await manager.branch_to(first)
    async with on_file(path) as store:
        manager = await opened(store)
        assert (manager.leaf_id, manager.messages) == (first, [user("one")])
        assert len(manager.entries) == 2
        third = await append_message(manager, user("three"))
        assert [entry.id for entry in manager.branch()] == [first, third]
        await manager.branch_to(None)
    async with on_file(path) as store:
        assert (await opened(store)).messages == []


async def test_sessions_that_begin_in_a_file_lie_beside_it(tmp_path: Path) -> None:
    """A fork is a file that pi lists with the others."""
    path = tmp_path / "talk.jsonl"
    async with on_file(path) as store:
        manager = await opened(store)
        first = await append_message(manager, user("one"))
        await manager.set_label(first, "start")
        forked = await manager.fork("console:main", first)
        await store.make_current("console:main", forked)

        other = await opened(store)
        assert (other.messages, other.header.parent_session, dict(other.labels)) == ([user("one")], manager.id, {first: "start"})
        assert {summary.id for summary in await store.list("console:main")} == {manager.id, forked}
    assert len(list(tmp_path.glob("talk-*.jsonl"))) == 1


async def test_a_file_has_one_writer(tmp_path: Path) -> None:
    """Two would tear the conversation apart; whoever comes second is told at once."""
    path = tmp_path / "talk.jsonl"
    async with on_file(path):
        with pytest.raises(UserMustAct, match=r"talk.jsonl is in use by another program"):
            on_file(path)

    async with on_file(path):
        pass


async def test_the_lock_holds_against_another_process_and_ends_with_it(tmp_path: Path) -> None:
    """However that process ends."""
    path = tmp_path / "talk.jsonl"
    async with on_file(path):
        pass
    script = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(path), stdin=pipe, stdout=pipe)
    assert other.stdout is not None
    assert await other.stdout.readline() == b"held\n"
    with pytest.raises(UserMustAct, match="in use"):
        on_file(path)
    other.kill()
    await other.communicate()

    async with on_file(path):
        pass


LINES = [
    '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/","theirs":1.0}',
    '{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"one","timestamp":1.0}}',
    '{"type":"message","id":"b","parentId":"a","timestamp":"","message":{"role":"user","content":"two","timestamp":1}}',
]


@pytest.mark.parametrize(
    ("damaged", "left"),
    [
        ("\n".join(LINES)[:-9], ["one"]),
        ("\n".join([LINES[0], "\x00\x00\x00", *LINES[1:]]) + "\n", ["one", "two"]),
        ("\n".join(["{torn", *LINES[1:]]) + "\n", ["one", "two"]),
        ("\n".join([LINES[0].replace('"version":3', '"version":2'), *LINES[1:]]) + "\n", ["one", "two"]),
    ],
)
async def test_a_file_that_is_not_in_order_is_kept_beside_the_one_that_is(tmp_path: Path, damaged: str, left: list[str]) -> None:
    """A torn end, garbage in between, a lost header, an old version. Nothing that was there is ever gone."""
    path = tmp_path / "talk.jsonl"
    path.write_text(damaged)
    (tmp_path / "talk.jsonl.original").write_text("from before")
    async with on_file(path) as store:
        manager = await opened(store)
        assert store.warnings
        assert [message.content for message in manager.messages if isinstance(message, UserMessage)] == left
        await append_message(manager, user("more"))

    assert (tmp_path / "talk.jsonl.original-2").read_text() == damaged
    assert (tmp_path / "talk.jsonl.original").read_text() == "from before"
    async with on_file(path) as store:
        assert store.warnings == ()
        assert (await opened(store)).messages[-1] == user("more")
    assert len(list(tmp_path.iterdir())) == 3


async def test_a_last_line_without_its_end_is_a_line(tmp_path: Path) -> None:
    """An editor may leave it out; what is appended must not run into it, and what is there stays to the byte."""
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(LINES))
    async with on_file(path) as store:
        await append_message(await opened(store), user("more"))

    assert path.read_text().startswith("\n".join(LINES) + "\n")
    assert len(path.read_text().splitlines()) == 4
    assert list(tmp_path.iterdir()) == [path]


async def test_what_is_no_session_is_left_alone(tmp_path: Path) -> None:
    """The first line of notes is no damaged header; an empty file may become a session."""
    notes, empty = tmp_path / "notes.md", tmp_path / "empty.jsonl"
    notes.write_text("# Notes\n")
    empty.touch()
    with pytest.raises(UserMustAct, match=r"notes.md: this is no session file"):
        on_file(notes)
    async with on_file(empty) as store:
        assert (await opened(store)).messages == []

    assert notes.read_text() == "# Notes\n"
    assert len(list(tmp_path.iterdir())) == 2


async def test_a_full_disk_costs_nothing_that_was_there(tmp_path: Path) -> None:
    """What could not be written as a whole is taken back; later there is room again."""
    path = tmp_path / "talk.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with on_file(path) as store:
        manager = await opened(store)
        first = await append_message(manager, user("one"))
        size = path.stat().st_size
        old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        try:
            with pytest.raises(OperatorMustAct, match="could not be written"):
                await append_message(manager, user("two"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, old)
        assert path.stat().st_size == size
        await append_message(manager, user("three"))

    async with on_file(path) as store:
        assert (await opened(store)).messages == [user("one"), user("three")]
        assert manager.branch()[0].id == first


async def test_a_folder_may_hold_any_scope_and_id(tmp_path: Path) -> None:
    """Names from elsewhere stay inside the folder, and no two are one."""
    folder = tmp_path / "sessions"
    scopes = ["../up", "web:a", "web:A", "a" * 200, "a" * 201, ".", "ü/%2F"]
    async with in_folder(folder) as store:
        for number, scope in enumerate(scopes):
            await store.create(scope, header(f"../{number}"))
        with pytest.raises(ValueError, match="at most"):
            await store.create("web:a", header("x" * 300))
    async with in_folder(folder) as store:
        assert {summary.id: summary.scope for summary in await store.list()} == {f"../{n}": scope for n, scope in enumerate(scopes)}
        assert [await store.current(scope) for scope in scopes] == [f"../{number}" for number in range(len(scopes))]
    assert all(path.parent == folder for path in folder.iterdir())
    assert [path for path in tmp_path.iterdir() if path != folder] == []


async def test_a_file_that_holds_no_session_is_not_listed(tmp_path: Path) -> None:
    """The others are."""
    folder = tmp_path / "sessions"
    async with in_folder(folder) as store:
        await store.create("web:a", header("one"))
        next(folder.iterdir()).joinpath("junk.jsonl").write_text("junk")
        assert [summary.id for summary in await store.list()] == ["one"]
        with pytest.raises(UserMustAct, match="no session file"):
            await store.load("junk")


async def test_more_sessions_than_are_held_at_once(tmp_path: Path) -> None:
    """Open files are bounded; a session that was let go is taken up again."""
    async with in_folder(tmp_path) as store:
        for number in range(40):
            await store.create("web:a", header(f"s{number}"))
            await store.append(f"s{number}", [said("e1", "x")], leaf="e1")
        held = len(list(Path("/proc/self/fd").iterdir()))
        await store.append("s0", [said("e2", "y", parent="e1")], leaf="e2")

        assert len(list(Path("/proc/self/fd").iterdir())) <= held
        assert [entry.id for entry in (await store.load("s0"))[1]] == ["e1", "e2"]


async def test_a_cancelled_append_is_whole_or_not_there(tmp_path: Path) -> None:
    """Whoever cancels finds the store at rest."""
    path = tmp_path / "talk.jsonl"
    async with on_file(path) as store:
        session_id = await store.current("console:main")
        assert session_id is not None
        task = asyncio.create_task(store.append(session_id, [said(str(n), "x" * 1000) for n in range(500)], leaf="499"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        _, entries, leaf = await store.load(session_id)

    assert (len(entries), leaf) in ((0, None), (500, "499"))
    assert all(isinstance(entry, MessageEntry) for entry in entries)
