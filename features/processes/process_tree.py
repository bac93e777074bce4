"""Ending a process with everything that it started."""

import contextlib
import os
import signal
from pathlib import Path

__all__ = ["kill_tree"]

_PROC = Path("/proc")
_ROUNDS = 5
"""A process that forks while it is searched for is found in the next round."""


def kill_tree(leader: int) -> None:
    """SIGKILL for the group of ``leader``, its session and, where ``/proc`` tells, its descendants.

    The group alone is not enough: ``timeout`` and shells with job control put what they run into groups of their own. ``leader`` must not
    have been reaped yet: until then neither its process id nor its group's can belong to anybody else.
    """
    for _ in range(_ROUNDS):
        found = _relatives(leader)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _relatives(leader: int) -> list[int]:
    """Living members of the session and living descendants, the leader left out."""
    processes = _processes()
    family = {leader}
    while True:
        new = {pid for pid, (parent, session) in processes.items() if pid not in family and (session == leader or parent in family)}
        if not new:
            return sorted(family - {leader})
        family |= new


def _processes() -> dict[int, tuple[int, int]]:
    """Parent and session of every living process; nothing where there is no ``/proc``."""
    processes: dict[int, tuple[int, int]] = {}
    try:
        entries = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - names are enough and there are many
    except FileNotFoundError:
        return processes
    for pid in entries:
        try:
            stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        except (OSError, ValueError):
            continue  # ended meanwhile
        state, parent, _, session = stat.rpartition(")")[2].split()[:4]
        if state not in "ZX":
            processes[pid] = (int(parent), int(session))
    return processes
