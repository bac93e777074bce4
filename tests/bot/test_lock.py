"""One host per data directory, whatever happens to the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.lock import DataDirectoryLock, running_host
from features.contracts.errors import OperatorMustAct

HOLD = """
import sys
from pathlib import Path
from bot.lock import DataDirectoryLock
with DataDirectoryLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Everything private lies in it."""
    data = tmp_path / "deep/data"
    with DataDirectoryLock(data):
        assert data.stat().st_mode & 0o777 == 0o700
        assert (data / "host.lock").stat().st_mode & 0o777 == 0o600
        assert running_host(data) == os.getpid()

    assert running_host(data) is None


def test_a_second_host_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """Also in the same process."""
    with (
        DataDirectoryLock(tmp_path),
        pytest.raises(OperatorMustAct, match=f"process {os.getpid()} already runs on the data directory"),
        DataDirectoryLock(tmp_path),
    ):
        raise AssertionError

    with DataDirectoryLock(tmp_path):
        assert running_host(tmp_path) == os.getpid()


def test_a_killed_host_leaves_no_lock_behind(tmp_path: Path) -> None:
    """A file with a pid alone would block the next start for ever."""
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin
    assert child.stdout
    with child.stdin, child.stdout:
        assert child.stdout.readline() == "held\n"
        assert running_host(tmp_path) == child.pid
        child.kill()
        child.wait()

    assert running_host(tmp_path) is None
    with DataDirectoryLock(tmp_path):
        assert running_host(tmp_path) == os.getpid()


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A file where the folder should be."""
    (tmp_path / "data").write_text("")
    with pytest.raises(OperatorMustAct, match=r"data cannot be used: .*set host.data_dir"), DataDirectoryLock(tmp_path / "data"):
        raise AssertionError
    assert running_host(tmp_path / "data") is None
