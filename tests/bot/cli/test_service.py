"""The unit files of systemd, and what it is told."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bot.cli.conftest import Terminal

ROOT = Path(__file__).parents[3]


def exposure(unit: Path) -> float:
    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)], capture_output=True, text=True, check=False
    ).stdout
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", told)
    assert found, told
    return float(found[1])


def installed(pumice: Terminal, units: Path, *options: str) -> Path:
    status, told, error = pumice("service", "install", "--units", str(units), *options)
    assert status == 0, error
    assert "enable --now pumice" in told
    assert "does not start without it" in told  # a file that is named has to be there
    return units / "pumice.service"


@pytest.fixture(autouse=True)
def outside_of_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a machine's programs are."""
    monkeypatch.setattr("sys.prefix", "/opt/pumice")


def test_the_machines_unit_is_sound_and_tight(tmp_path: Path, pumice: Terminal) -> None:
    """2.0 is what was promised for the unit by itself; the drop-in gives up what the sandbox needs, and says so."""
    unit = installed(pumice, tmp_path, "--config", "/etc/pumice/pumice.toml")
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    drop_in = tmp_path / "pumice.service.d" / "sandbox.conf"

    assert checked.stderr == ""
    assert "bubblewrap" in drop_in.read_text()
    drop_in.unlink()
    assert exposure(unit) <= 2.0


def test_a_users_unit_is_sound(tmp_path: Path, pumice: Terminal) -> None:
    """Without what only the machine's manager can do."""
    unit = installed(pumice, tmp_path, "--user")
    checked = subprocess.run(["systemd-analyze", "--user", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)

    assert "@" not in unit.read_text()
    assert not [line for line in checked.stderr.splitlines() if "pumice" in line]


def test_what_is_installed_is_told_and_taken_away(tmp_path: Path, pumice: Terminal) -> None:
    """A file that somebody changed is named."""
    missing = pumice("service", "status", "--units", str(tmp_path))
    unit = installed(pumice, tmp_path)
    good = pumice("service", "status", "--units", str(tmp_path))
    unit.write_text(unit.read_text().replace("NoNewPrivileges=yes", "NoNewPrivileges=no"))
    changed = pumice("service", "status", "--units", str(tmp_path))
    gone = pumice("service", "uninstall", "--units", str(tmp_path))
    again = pumice("service", "uninstall", "--units", str(tmp_path))

    assert [told[0] for told in (missing, good, changed, gone, again)] == [1, 0, 1, 0, 1]
    assert "Not installed" in missing[1]
    assert "not as this version ships it" in changed[1]
    assert "is not there" in again[2]
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_the_service_could_not_see_is_refused(tmp_path: Path, pumice: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be found out at the first start."""
    monkeypatch.setattr("sys.prefix", "/home/ann/pumice/.venv")
    status, _, error = pumice("service", "install", "--units", str(tmp_path))

    assert status == 1
    assert "--user" in error


async def test_the_manager_hears_when_the_host_is_ready_lives_and_stops(tmp_path: Path) -> None:
    """Readiness after the start, the watchdog from the loop itself, and the end before it takes its time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        loop = asyncio.get_running_loop()
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(tmp_path), "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000",
            "PUMICE_HTTP__PORT": "0",
        }  # fmt: skip
        command = [sys.executable, "-m", "bot.cli", "run", "--data-dir", str(tmp_path / "data")]
        child = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        heard = [(await asyncio.wait_for(loop.sock_recv(listening, 4096), 30)).decode() for _ in range(4)]
        child.send_signal(signal.SIGTERM)
        while not heard[-1].startswith("STOPPING"):
            heard.append((await asyncio.wait_for(loop.sock_recv(listening, 4096), 10)).decode())
        assert await asyncio.wait_for(child.wait(), 15) == 0

    assert heard[0].startswith("READY=1\nSTATUS=serving ")
    assert set(heard[1:-1]) == {"WATCHDOG=1"}
