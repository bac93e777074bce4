"""All data as one file, and back; while a host runs, onto another machine, and never half."""

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.bot.cli.conftest import Terminal
from tests.e2e.rig import configured, running
from tests.e2e.test_jobs import says

ROOT = Path(__file__).parents[3]


async def talked(folder: Path, backup: Path | None = None) -> None:
    """A host in which something was said; with a backup made while it runs."""
    folder.mkdir(exist_ok=True)
    async with running(configured(folder)) as (host, client):
        await says(client, "what can you do")
        workspace = host.config.host.data_dir / "workspaces" / "web-main"
        (workspace / "notes.txt").write_text("ours")
        (workspace / "python").symlink_to("/usr/bin/python3")
        if backup is not None:
            command = [sys.executable, "-m", "bot.cli", "backup", str(backup), "--data-dir", str(folder / "data")]
            made = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
            told, _ = await made.communicate()
            assert made.returncode == 0
            assert b"holds all data" in told


def files(folder: Path) -> dict[str, str | bytes]:
    """What a directory holds, without what belongs to a process."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() and path.name not in ("host.lock", "http.url") and not path.name.startswith("state.db")
    }


async def test_a_backup_of_a_running_host_comes_to_life_elsewhere(tmp_path: Path, pumice: Terminal) -> None:
    """The talk, the files, the token: all of it, for the host's user alone."""
    backup = tmp_path / "all.pumice"
    await talked(tmp_path / "one", backup)
    status, told, _ = await asyncio.to_thread(pumice, "restore", str(backup), "--data-dir", str(tmp_path / "two" / "data"))

    assert (status, "is as it was in" in told) == (0, True)
    assert backup.stat().st_mode & 0o077 == 0
    assert files(tmp_path / "two" / "data") == files(tmp_path / "one" / "data")
    assert (tmp_path / "two" / "data").stat().st_mode & 0o077 == 0
    async with running(configured(tmp_path / "two")) as (_, client):
        messages = await client.get("/api/chats/web:main/messages")
        assert [message["role"] for message in messages] == ["user", "assistant"]


async def test_data_that_is_there_is_put_aside_and_only_when_asked(tmp_path: Path, pumice: Terminal) -> None:
    """A restore by mistake loses nothing; and not under a host that runs."""
    backup = tmp_path / "all.pumice"
    await talked(tmp_path / "one", backup)
    data = tmp_path / "one" / "data"
    (data / "workspaces" / "web-main" / "later.txt").write_text("made after the backup")
    refused = await asyncio.to_thread(pumice, "restore", str(backup), "--data-dir", str(data))
    async with running(configured(tmp_path / "one")):
        busy = await asyncio.to_thread(pumice, "restore", str(backup), "--data-dir", str(data), "--replace")
    done = await asyncio.to_thread(pumice, "restore", str(backup), "--data-dir", str(data), "--replace")
    [aside] = tmp_path.glob("one/data.before-*")

    assert (refused[0], "--replace" in refused[2]) == (1, True)
    assert (busy[0], "already runs" in busy[2]) == (1, True)
    assert done[0] == 0
    assert not (data / "workspaces" / "web-main" / "later.txt").exists()
    assert (aside / "workspaces" / "web-main" / "later.txt").exists()


def test_what_cannot_be_backed_up_or_restored_is_said(tmp_path: Path, pumice: Terminal) -> None:
    """Nothing is made on the way."""
    (tmp_path / "there").write_text("mine")
    (tmp_path / "torn").write_bytes(b"\x1f\x8b and then nothing")
    said = [
        pumice("backup", "all.pumice"),
        pumice("backup", "there"),
        pumice("restore", "nowhere", "--data-dir", "new"),
        pumice("restore", "there", "--data-dir", "new"),
        pumice("restore", "torn", "--data-dir", "new"),
    ]

    assert [status for status, _, _ in said] == [1] * 5
    for words, (_, _, error) in zip(("no data", "--force", "no file", "no backup", "no backup"), said, strict=True):
        assert words in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there", "torn"]


@pytest.mark.parametrize("name", ["../outside", "/tmp/pumice-outside", "workspaces/link/inside"])
def test_a_backup_that_somebody_made_up_writes_nothing_outside(name: str, tmp_path: Path, pumice: Terminal) -> None:
    """Names and links in it lead nowhere."""
    made_up = tmp_path / "made-up"
    with tarfile.open(made_up, "w:gz") as archive:
        for each, content in (("pumice-backup.json", json.dumps({"format": 1, "version": "1", "at": ""}).encode()), (name, b"evil")):
            if each.startswith("workspaces"):
                link = tarfile.TarInfo("workspaces/link")
                link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
                archive.addfile(link)
            entry = tarfile.TarInfo(each)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    status, _, error = pumice("restore", str(made_up), "--data-dir", str(tmp_path / "new"))

    assert status == 1
    assert "is no backup" in error or "is damaged" in error
    assert not any((tmp_path / wrong).exists() for wrong in ("outside", "inside", "new"))
    assert not Path("/tmp/pumice-outside").exists()


async def test_a_backup_that_is_killed_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    """At any instant: the name appears with the whole."""
    await talked(tmp_path / "one")
    (tmp_path / "one" / "data" / "workspaces" / "web-main" / "large").write_bytes(os.urandom(30_000_000))
    backup = tmp_path / "all.pumice"
    for seconds in (0.25, 0.35, 0.5):
        command = [sys.executable, "-m", "bot.cli", "backup", str(backup), "--data-dir", str(tmp_path / "one" / "data"), "--force"]
        child = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
        await asyncio.sleep(seconds)
        with suppress(ProcessLookupError):  # it may have been quick
            child.kill()
        await child.wait()
        if backup.exists():
            with tarfile.open(backup, "r:gz") as whole:
                assert "state.db" in whole.getnames()
