"""Everything the host stands on, one finding each."""

import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.doctor import Finding, examine
from bot.lock import DataDirectoryLock
from features.contracts.testing import FakeClock
from tests.bot.cli.conftest import pumice  # noqa: F401 - a fixture

Terminal = Callable[..., tuple[int, str, str]]


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


async def look(folder: Path, port: int, text: str = "", clock: FakeClock | None = None) -> dict[str, Finding]:
    (folder / "pumice.toml").write_text(f"http.port = {port}\n{text}")
    found = await examine(None, {"TZ": "Europe/Vienna", "KEY": "key-0123456789"}, folder, clock or FakeClock())
    return {finding.check: finding for finding in found}


async def test_a_fresh_machine_is_fine_and_stays_fresh(tmp_path: Path, free_port: int) -> None:
    """Notes, but nothing wrong, and nothing made by looking."""
    found = await look(tmp_path, free_port, "processes.sandbox = 'none'\n")

    assert {check for check, finding in found.items() if finding.state == "warning"} == {"sandbox", "models"}
    assert not [finding for finding in found.values() if finding.state == "wrong"]
    assert "bash is for owners only" in found["sandbox"].what
    assert found["clock"].what == "2026-01-05 10:00 in Europe/Vienna"
    assert [file.name for file in tmp_path.iterdir()] == ["pumice.toml"]


async def test_a_bad_configuration_is_what_run_would_say(tmp_path: Path, free_port: int) -> None:
    """One validator for both; nothing else can be looked at."""
    found = await look(tmp_path, free_port, "[http2]\n")

    assert list(found) == ["configuration"]
    assert found["configuration"].state == "wrong"
    assert found["configuration"].what == f"{tmp_path}/pumice.toml: http2 is no known key"
    assert found["configuration"].fix == "Did you mean http?"


async def test_files_that_others_can_read_are_told_with_the_command(tmp_path: Path, free_port: int) -> None:
    """The token opens everything."""
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    (data / "http.token").write_text("x")
    (data / "http.token").chmod(0o644)
    found = await look(tmp_path, free_port)

    assert (found["data directory"].state, found["data directory"].fix) == ("warning", f"Run: chmod 700 {data}")
    assert (found["secrets"].state, found["secrets"].fix) == ("wrong", f"Run: chmod 600 {data}/http.token")


async def test_a_plain_secret_in_a_readable_file_is_wrong(tmp_path: Path, free_port: int) -> None:
    """In a private one it is only a note."""
    (tmp_path / "pumice.toml").touch(mode=0o644)
    found = await look(tmp_path, free_port, "http.token = 'plain-text-token'\n")
    assert found["secrets"].fix == f"Run: chmod 600 {tmp_path}/pumice.toml"

    (tmp_path / "pumice.toml").chmod(0o600)
    found = await look(tmp_path, free_port, "http.token = 'plain-text-token'\n")
    assert found["secrets"].state == "ok"
    assert "plain-text-token" not in repr(found)
    assert "plain text" in found["configuration"].what


async def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    """Before the host fails on it."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        found = await look(tmp_path, other.getsockname()[1])

    assert found["port"].state == "wrong"
    assert found["port"].fix == "Stop what uses it, or set http.port"


async def test_a_running_host_explains_its_port_and_database(tmp_path: Path, free_port: int) -> None:
    """They are in use because it works."""
    with DataDirectoryLock(tmp_path / "data"):
        (tmp_path / "data/state.db").touch(mode=0o600)
        found = await look(tmp_path, free_port)

    assert found["host"].what == f"running as process {os.getpid()}"
    assert "port" not in found
    assert found["database"].what.startswith("in use by the running host")


async def test_a_damaged_database_is_told_and_left_alone(tmp_path: Path, free_port: int) -> None:
    """It may still be salvaged."""
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data/state.db").write_bytes(b"this is no database, whatever its name says" * 100)
    (tmp_path / "data/state.db").chmod(0o600)
    before = (tmp_path / "data/state.db").read_bytes()
    found = await look(tmp_path, free_port)

    assert found["database"].state == "wrong"
    assert found["database"].fix
    assert (tmp_path / "data/state.db").read_bytes() == before


async def test_a_clock_before_our_time_is_told(tmp_path: Path, free_port: int) -> None:
    """A machine without a battery starts in 1970."""
    found = await look(tmp_path, free_port, clock=FakeClock(datetime(1970, 1, 1, tzinfo=UTC)))

    assert found["clock"].state == "wrong"


async def test_models_and_empty_lists_are_told(tmp_path: Path, free_port: int) -> None:
    """What chats will meet."""
    text = "models.default = 'anthropic/claude'\naccess.mode = 'allowlist'\nprocesses.harden = false\n"
    provider = f"[providers.anthropic]\napi_key = 'env:KEY'\nbase_url = 'http://127.0.0.1:{free_port}'\n"
    found = await look(tmp_path, free_port, text + provider)

    assert found["models"].what == "chats use anthropic/claude"
    assert "nobody may talk" in found["access"].what
    assert found["hardening"].state == "warning"


def test_the_command_prints_a_line_each_and_tells_by_its_status(pumice: Terminal, tmp_path: Path, free_port: int) -> None:  # noqa: F811
    """Scripts read the status, people the lines, programs the JSON."""
    (tmp_path / "pumice.toml").write_text(f"http.port = {free_port}\nprocesses.sandbox = 'none'\n")
    status, out, err = pumice("doctor")
    assert (status, err) == (0, "")
    assert f"ok     port: 127.0.0.1:{free_port} is free.\n" in out
    assert "note   sandbox: processes.sandbox is 'none', so bash is for owners only. Mend that, or make owners only" in out
    assert {finding["check"] for finding in json.loads(pumice("doctor", "--json")[1])} >= {"configuration", "database", "disk"}

    (tmp_path / "pumice.toml").write_text("http.prot = 1\n")
    status, out, _ = pumice("doctor")
    assert status == 1
    assert out == f"WRONG  configuration: {tmp_path}/pumice.toml: http.prot is no known key. Did you mean http.port?\n"
