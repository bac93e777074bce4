"""While a host runs, commands go through it."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.clock import SystemClock
from bot.http.auth import load_or_create_token
from bot.http.host_view import AccessMember, PairingRequest, SessionDetail
from bot.http.server import HttpServer
from bot.http.testing import MemoryHost
from bot.lock import DataDirectoryLock
from features.contracts.messages import UserMessage
from features.contracts.sessions import MessageEntry, SessionHeader, SessionSummary
from tests.bot.cli.conftest import Terminal

MOMENT = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[MemoryHost]:
    view = MemoryHost(SystemClock(), tmp_path)
    data = tmp_path / "data"
    with DataDirectoryLock(data):
        async with HttpServer(view, token=load_or_create_token(data, None), data_dir=data, clock=view.clock, port=0):
            yield view


async def test_access_is_changed_in_the_host(pumice: Terminal, host: MemoryHost) -> None:
    """Its memory is what decides."""
    host.members["telegram:1"] = AccessMember(id="telegram:1", name="Anna", owner=True, source="configuration")
    host.pending.append(PairingRequest(id="telegram:66", name="Eve", code="ABCD2345", expires_at=datetime.now(UTC) + timedelta(minutes=5)))
    status, out, err = await asyncio.to_thread(pumice, "pair", "list")
    assert (status, err) == (0, "")
    assert "telegram:1  Anna  owner  configuration" in out
    assert "telegram:66   Eve" in out

    assert (await asyncio.to_thread(pumice, "pair", "approve", "ABCD2345"))[0] == 0
    assert not host.members["telegram:66"].owner
    assert (await asyncio.to_thread(pumice, "pair", "revoke", "telegram:66"))[0] == 0
    assert "telegram:66" not in host.members
    status, _, err = await asyncio.to_thread(pumice, "pair", "approve", "WRONGONE")
    assert status == 1
    assert err.startswith("pumice: error: ")


async def test_a_person_is_made_an_owner_in_the_host(pumice: Terminal, host: MemoryHost) -> None:
    """Beside the first, whom the host makes one by itself."""
    host.pending.append(PairingRequest(id="telegram:66", name="Eve", code="ABCD2345", expires_at=datetime.now(UTC) + timedelta(minutes=5)))

    assert (await asyncio.to_thread(pumice, "pair", "approve", "ABCD2345", "--owner"))[0] == 0
    assert host.members["telegram:66"].owner


async def test_sessions_are_read_and_deleted_in_the_host(pumice: Terminal, host: MemoryHost) -> None:
    """In the same form as without one."""
    summary = SessionSummary(
        id="ab-1", scope="telegram:1", name="Rome", created_at=MOMENT, modified_at=MOMENT, message_count=1, first_message="hi"
    )
    entry = MessageEntry(id="e1", parent_id=None, timestamp="2026-01-05T09:00:00.000Z", message=UserMessage(content="hi", timestamp=1))
    header = SessionHeader(version=3, id="ab-1", timestamp="2026-01-05T09:00:00.000Z", cwd="/")
    host.kept_sessions["ab-1"] = SessionDetail(summary=summary, header=header, entries=[entry], leaf_id="e1")

    assert "ab-1  telegram:1  Rome     1         2026-01-05 09:00" in (await asyncio.to_thread(pumice, "sessions", "list"))[1]
    assert "2026-01-05 09:00  user\nhi" in (await asyncio.to_thread(pumice, "sessions", "show", "ab"))[1]
    detail = json.loads((await asyncio.to_thread(pumice, "sessions", "show", "ab-1", "--json"))[1])
    assert detail["entries"][0]["message"]["content"] == "hi"
    assert (await asyncio.to_thread(pumice, "sessions", "delete", "ab-1", "--yes"))[0] == 0
    assert host.kept_sessions == {}


async def test_commands_need_no_secret_of_the_host(pumice: Terminal, host: MemoryHost, tmp_path: Path) -> None:
    """They are in the environment of the host; whoever opens a second terminal to approve a code does not have them."""
    host.pending.append(PairingRequest(id="telegram:66", name="Eve", code="ABCD2345", expires_at=datetime.now(UTC) + timedelta(minutes=5)))
    (tmp_path / "pumice.toml").write_text(
        """
        [channels.telegram]
        token = "env:NOT_IN_THIS_TERMINAL"
        [providers.anthropic]
        kind = "anthropic"
        api_key = "env:NOT_IN_THIS_TERMINAL"
        """
    )

    assert (await asyncio.to_thread(pumice, "pair", "approve", "ABCD2345"))[0] == 0
    assert "telegram:66" in host.members
    assert (await asyncio.to_thread(pumice, "sessions", "list"))[0] == 0
    assert (await asyncio.to_thread(pumice, "send", "web:main", "hello"))[0] == 0


async def test_sessions_are_imported_exported_and_checked_in_the_host(pumice: Terminal, host: MemoryHost, tmp_path: Path) -> None:
    """The bytes are the same on both ways."""
    file = tmp_path / "talk.jsonl"
    file.write_text('{"type":"session","version":3,"id":"pi-session","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/","theirs":1.0}\n')

    assert await asyncio.to_thread(pumice, "sessions", "import", str(file), "--chat", "web:main") == (0, "pi-session\n", "")
    assert (await asyncio.to_thread(pumice, "sessions", "export", "pi-session"))[1] == file.read_text()
    assert "pi-session  sound" in (await asyncio.to_thread(pumice, "sessions", "check"))[1]
    status, _, err = await asyncio.to_thread(pumice, "sessions", "import", str(file), "--chat", "slack:T/C")
    assert (status, "not enabled" in err) == (1, True)
