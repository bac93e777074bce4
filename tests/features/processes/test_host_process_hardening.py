import subprocess
import sys
from pathlib import Path

import pytest

from features.processes import HostProcessHardening

ROOT = Path(__file__).parents[3]
HOST = """
import ctypes, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from features.processes import HostProcessHardening
if os.geteuid() == 0:  # root may read everything
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # changing the user has made this process non-dumpable already
if sys.argv[2] == "hardened":
    hardening = HostProcessHardening()
    assert hardening.apply() + hardening.apply() == []
done = subprocess.run(["cat", f"/proc/{os.getpid()}/environ"], capture_output=True, text=True, cwd="/")
print("MARKER" in done.stdout, done.stderr.strip())
"""


def probe(state: str) -> str:
    """What a child of the same ordinary user reads of its parent's environment."""
    environment = {"MARKER": "1", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", HOST, str(ROOT), state]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl is Linux's")
def test_a_child_cannot_read_the_hardened_hosts_environment() -> None:
    """The host's tokens stand in its environment; a command of the agent runs as the same user."""
    assert probe("open").strip() == "True"
    assert "Permission" in probe("hardened")


def test_hardening_elsewhere_warns_with_the_fix() -> None:
    """The operator must know what is not closed."""
    warnings = HostProcessHardening(platform="darwin").apply()

    assert "run it as a user of its own" in warnings[-1]
