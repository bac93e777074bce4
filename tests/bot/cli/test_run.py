"""Starting the host, and stopping it by signals."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HOST = """
import asyncio, sys, types
run = types.ModuleType("bot.run")
async def run_host(config):
    print("up", config.host.data_dir, flush=True)
    try:
        await asyncio.sleep(3600)
    finally:
        print("settling", flush=True)
        await asyncio.sleep({settling})
        print("settled", flush=True)
run.run_host = run_host
sys.modules["bot.run"] = run
from bot.cli import main
main(["run", "--data-dir", "elsewhere"])
"""


def start(folder: Path, *, settling: float) -> subprocess.Popen[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [sys.executable, "-c", HOST.format(settling=settling)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    assert child.stdout.readline() == f"up {folder}/elsewhere\n"
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_host_settle(tmp_path: Path, number: signal.Signals) -> None:
    """Runs are settled and messages are sent before it leaves."""
    with start(tmp_path, settling=0) as child:
        child.send_signal(number)
        out, err = child.communicate()

    assert (child.returncode, out) == (0, "settling\nsettled\n")
    assert err == "Stopping; once more to force it.\n"


def test_a_second_signal_forces_it(tmp_path: Path) -> None:
    """Whoever presses twice means it."""
    with start(tmp_path, settling=3600) as child:
        assert child.stdout
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "settling\n"
        child.send_signal(signal.SIGINT)
        child.wait()

    assert child.returncode == 130
