"""Admitting from the machine's own command line."""

import asyncio
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bot.access import Verdict
from bot.cli.host_data import open_access
from bot.config import load_config
from bot.lock import DataDirectoryLock
from features.contracts.chat import Address, InboundMessage, Person
from tests.bot.cli.conftest import Terminal


def speak(folder: Path) -> Verdict:
    """What a host says to a stranger."""
    message = InboundMessage(
        key="1", address=Address("telegram", "66"), sender=Person(id="telegram:66", name="Eve"), text="hi", sent_at=datetime.now(UTC)
    )

    async def judge() -> Verdict:
        async with open_access(load_config(None, {}, folder)) as access:
            return await access.judge(message)

    return asyncio.run(judge())


def code_from(verdict: Verdict) -> str:
    found = re.search(r"`pumice pair approve (\w+)`", str(verdict.reply))
    assert found
    return found[1]


def test_looking_makes_nothing(pumice: Terminal, tmp_path: Path) -> None:
    """A fresh machine stays fresh."""
    assert pumice("pair", "list")[:2] == (0, "Nobody is admitted yet. Who writes to the bot gets a code for 'pumice pair approve'.\n")
    assert json.loads(pumice("pair", "list", "--json")[1]) == {"members": [], "pending": []}
    assert pumice("pair", "approve", "ABCDEFGH")[0] == 1
    assert pumice("pair", "revoke", "telegram:1")[0] == 1
    assert list(tmp_path.iterdir()) == []


def test_the_told_command_admits_the_first_owner(pumice: Terminal, tmp_path: Path) -> None:
    """From the reply to a stranger to an owner in one step."""
    code = code_from(speak(tmp_path))
    assert "telegram:66   Eve" in pumice("pair", "list")[1]
    assert pumice("pair", "approve", code) == (0, "Eve (telegram:66) may talk to me now and is an owner.\n", "")

    assert speak(tmp_path) == Verdict(admitted=True, owner=True)
    overview = json.loads(pumice("pair", "list", "--json")[1])
    assert overview == {"members": [{"id": "telegram:66", "name": "Eve", "owner": True, "source": "pairing"}], "pending": []}


def test_a_wrong_code_is_a_failure(pumice: Terminal, tmp_path: Path) -> None:
    """With the way out, in one line."""
    speak(tmp_path)
    status, out, err = pumice("pair", "approve", "ABCDEFGH")

    assert (status, out) == (1, "")
    assert err.startswith("pumice: error: That code is unknown or has expired.")


def test_an_admission_is_taken_back(pumice: Terminal, tmp_path: Path) -> None:
    """Who is in the configuration is taken out there."""
    pumice("pair", "approve", code_from(speak(tmp_path)))
    assert pumice("pair", "revoke", "telegram:66")[:2] == (0, "telegram:66 is no longer admitted.\n")
    assert not speak(tmp_path).admitted
    assert "was not admitted by pairing" in pumice("pair", "revoke", "telegram:66")[2]

    (tmp_path / "pumice.toml").write_text("access.owners = ['telegram:1']\n")
    assert "telegram:1" in pumice("pair", "list")[1]
    assert "admitted by `access.owners`" in pumice("pair", "revoke", "telegram:1")[2]


def test_what_was_decided_and_tried_is_shown(pumice: Terminal, tmp_path: Path) -> None:
    """The newest first: who, by whom, and when."""
    assert pumice("pair", "log")[1] == "Nothing has happened yet.\n"
    code = code_from(speak(tmp_path))
    pumice("pair", "approve", "ABCDEFGH")
    pumice("pair", "approve", code)
    pumice("pair", "revoke", "telegram:66")
    records = json.loads(pumice("pair", "log", "--json")[1])

    assert [(each["event"], each["who"], each["by"]) for each in records] == [
        ("revoked", "telegram:66", "cli"),
        ("admitted", "telegram:66", "cli"),
        ("wrong code", "cli", "cli"),
        ("code", "telegram:66", ""),
        ("refused", "telegram:66", ""),
    ]
    assert "as an owner" in records[1]["detail"]
    assert len(pumice("pair", "log", "--limit", "2")[1].splitlines()) == 3
    assert code not in pumice("pair", "log")[1]


def test_a_data_directory_that_another_holds_is_asked_for_its_host(pumice: Terminal, tmp_path: Path) -> None:
    """Two writers would contradict each other."""
    speak(tmp_path)
    with DataDirectoryLock(tmp_path / "data"):
        status, _, err = pumice("pair", "list")

    assert status == 1
    assert "no host is running" in err


def test_the_log_does_not_speak_beside_the_error(pumice: Terminal, tmp_path: Path) -> None:
    """Errors are one line; Python would print the warning of a wrong code by itself."""
    speak(tmp_path)
    command = [sys.executable, "-m", "bot.cli", "pair", "approve", "ABCDEFGH"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("pumice: error: That code")
