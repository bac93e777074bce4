"""Listing, showing and deleting sessions without a host."""

import asyncio
import json
from pathlib import Path

import pytest

from bot.cli.host_data import open_database
from bot.config import load_config
from features.contracts.messages import UserMessage
from features.contracts.sessions import MessageEntry, SessionHeader
from features.sessions import DatabaseSessionStore
from tests.bot.cli.conftest import Terminal


@pytest.fixture
def stored(tmp_path: Path) -> None:
    async def store() -> None:
        async with open_database(load_config(None, {}, tmp_path)) as database:
            sessions = DatabaseSessionStore(database)
            for session_id, text in (("ab-1", "hello"), ("ab-2", "see\x1b[31m this")):
                header = SessionHeader(version=3, id=session_id, timestamp="2026-01-05T09:00:00.000Z", cwd="/")
                await sessions.create("telegram:1", header)
                entry = MessageEntry(
                    id="e1",
                    parent_id=None,
                    timestamp="2026-01-05T09:00:00.000Z",
                    message=UserMessage(content=text, timestamp=1767603600000),
                )
                await sessions.append(session_id, [entry], leaf="e1")

    asyncio.run(store())


def test_a_fresh_machine_has_no_sessions(pumice: Terminal, tmp_path: Path) -> None:
    """And looking makes no files."""
    assert pumice("sessions", "list") == (0, "There are no sessions yet.\n", "")
    assert json.loads(pumice("sessions", "list", "--json")[1]) == []
    assert list(tmp_path.iterdir()) == []


def test_sessions_are_listed(pumice: Terminal, stored: None) -> None:
    """What strangers wrote cannot act on the terminal."""
    status, out, _ = pumice("sessions", "list")

    assert status == 0
    assert out.splitlines()[0].split() == ["id", "chat", "session", "messages", "last", "(UTC)"]
    assert "ab-1  telegram:1  hello" in out
    assert "\x1b" not in out
    assert {one["id"] for one in json.loads(pumice("sessions", "list", "--json")[1])} == {"ab-1", "ab-2"}


def test_a_session_is_shown(pumice: Terminal, stored: None) -> None:
    """By its id or the beginning of it; as JSON in the form of session files."""
    out = pumice("sessions", "show", "ab-1")[1]
    assert "2026-01-05 09:00  user\nhello" in out
    assert "\x1b" not in pumice("sessions", "show", "ab-2")[1]
    detail = json.loads(pumice("sessions", "show", "ab-1", "--json")[1])
    assert detail["entries"][0]["message"]["content"] == "hello"

    assert "could be 2 sessions" in pumice("sessions", "show", "ab")[2]
    assert pumice("sessions", "show", "zz") == (1, "", "pumice: error: there is no session 'zz'. 'pumice sessions list' lists them.\n")


def test_a_session_is_deleted_after_a_question(pumice: Terminal, stored: None) -> None:
    """Without a terminal to ask on, nothing is deleted."""
    assert pumice("sessions", "delete", "ab-1")[0] == 130
    assert "ab-1" in pumice("sessions", "list")[1]
    assert pumice("sessions", "delete", "ab-1", "--yes")[:2] == (0, "ab-1 is deleted.\n")
    assert "ab-1" not in pumice("sessions", "list")[1]


LINES = (
    '{"type":"session","version":3,"id":"pi-session","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/","theirs":1.0}',
    '{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"hello \\ud83d","timestamp":1.0}}',
    '{"type":"novelty","id":"b","parentId":"a","timestamp":""}',
)


def test_a_session_file_is_imported_and_exported_to_the_same_bytes(pumice: Terminal, tmp_path: Path) -> None:
    """Whatever other programs wrote into it. A second time it is a copy of its own."""
    file = tmp_path / "talk.jsonl"
    file.write_text("".join(f"{line}\n" for line in LINES))
    status, out, err = pumice("sessions", "import", str(file), "--chat", "web:main")
    assert (status, out) == (0, "pi-session\n")
    assert "pumice: warning:" in err
    assert "1 entry of a kind or form that is not known here" in err

    assert pumice("sessions", "export", "pi-s")[1] == file.read_text()
    assert pumice("sessions", "export", "pi-session", "back.jsonl")[0] == 0
    assert Path("back.jsonl").read_bytes() == file.read_bytes()
    assert "pi-session  web:main  hello" in pumice("sessions", "list")[1]
    (copy,) = json.loads(pumice("sessions", "import", str(file), "--json")[1])
    assert copy["id"] != "pi-session"
    assert pumice("sessions", "export", copy["id"])[1] == file.read_text()


def test_a_session_is_exported_for_people(pumice: Terminal, stored: None, tmp_path: Path) -> None:
    """The name of the file says how; what is there is not written over unasked."""
    assert pumice("sessions", "export", "ab-1", "talk.html")[0] == 0
    assert "<div class=said>hello</div>" in Path("talk.html").read_text()
    assert "## person" in pumice("sessions", "export", "ab-1", "--format", "md")[1]
    Path("talk.html").write_text("mine")
    status, _, err = pumice("sessions", "export", "ab-1", "talk.html")
    assert (status, err) == (1, "pumice: error: talk.html is there already. Choose another name, or say --force.\n")
    assert Path("talk.html").read_text() == "mine"
    assert pumice("sessions", "export", "ab-1", "talk.html", "--force")[0] == 0
    assert pumice("sessions", "export", "ab-1", "nowhere/talk.md")[0] == 1


def test_what_is_no_session_is_not_imported_and_the_others_are(pumice: Terminal, tmp_path: Path) -> None:
    """One line for each file, and a failure in the end."""
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "talk.jsonl").write_text("\n".join(LINES[:2]))
    status, out, err = pumice("sessions", "import", "notes.txt", "gone.jsonl", "talk.jsonl")

    assert (status, out) == (1, "pi-session\n")
    assert "pumice: error: notes.txt: this is no session file" in err
    assert "pumice: error: gone.jsonl cannot be read: No such file or directory." in err
    assert pumice("sessions", "import", "talk.jsonl", "--chat", "nonsense")[0] == 2


def test_damage_is_found_repaired_and_kept(pumice: Terminal, stored: None, tmp_path: Path) -> None:
    """What was there before stays as a file; a sound session is left alone."""

    async def damage() -> None:
        async with open_database(load_config(None, {}, tmp_path)) as database:
            sql = "INSERT INTO entries VALUES ('ab-1', 1, 'e2', 'e1', '{torn')"
            await database.write(lambda transaction: transaction.execute(sql))
            await database.write(
                lambda transaction: transaction.execute("UPDATE sessions SET entry_count = 2, leaf = 'e2' WHERE id = 'ab-1'")
            )

    assert "ab-1  sound" in pumice("sessions", "check")[1]
    asyncio.run(damage())
    status, out, err = pumice("sessions", "check", "ab-1", "--dry-run")
    assert status == 1
    assert "damaged" in out
    assert "Repair them" in err

    (found,) = json.loads(pumice("sessions", "check", "ab-1", "--json")[1])
    assert found["problems"] == ["1 entry cannot be read"]
    assert "{torn" in Path(found["original"]).read_text()
    assert "ab-1  sound" in pumice("sessions", "check", "ab-1")[1]
    assert "hello" in pumice("sessions", "show", "ab-1")[1]
