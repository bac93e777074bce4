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
