"""What the benchmarks share: running a child and reading its CPU time, percentiles, and a row of the report."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["child_cpu", "free_port", "percentile", "process_cpu", "report", "resident_mb", "running", "wait_for"]

ROOT = Path(__file__).resolve().parent.parent


def report(what: str, value: str, target: str) -> None:
    """One line: what was measured, the figure, and what it should be."""
    print(f"{what:<64} {value:>16}   target {target}", flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0..1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def child_cpu(argv: Sequence[str], *, times: int = 7) -> float:
    """Median CPU seconds, user and system, of a command that ends by itself."""
    spent = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return percentile(spent, 0.5)


def process_cpu(pid: int) -> float:
    """CPU seconds that a living process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Resident memory of a living process in MB (10^6 bytes)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(argv: Sequence[str], **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child of ours for the length of the block; it is ended by its own id."""
    child = subprocess.Popen(argv, cwd=ROOT, env={**os.environ, **environment}, stdout=sys.stderr)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_for(url: str, *, seconds: float = 20.0) -> None:
    """Until something answers there."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError):
                return
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
