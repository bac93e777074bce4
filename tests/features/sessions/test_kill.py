"""SIGKILL at random instants."""

import random
import subprocess
import sys
from pathlib import Path

from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore, SessionManager
from features.storage import Database

ROUNDS = 6


def _killed_after(lines: int, path: Path) -> list[tuple[str, str]]:
    """Run the appender, kill it in the middle of whatever follows its n-th report, and give all that it reported."""
    command = [sys.executable, "-m", "tests.features.sessions.appender", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reports = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        reports += process.stdout.readlines()
    assert process.returncode == -9
    complete = [line.split() for line in reports if line.endswith("\n")]
    return [(session, entry) for session, entry in complete]


async def test_every_append_that_was_reported_is_there_after_a_kill(tmp_path: Path) -> None:
    """Six crashes of one database, some of them while the log is folded into the file; it stays sound and usable."""
    path = tmp_path / "state.db"
    rng = random.Random(20260105)
    reported: list[tuple[str, str]] = []
    for _ in range(ROUNDS):
        reported += _killed_after(rng.randrange(1, 600), path)
        async with Database(path, [SESSION_MIGRATIONS]) as database:
            store = DatabaseSessionStore(database)
            assert await database.check() == []
            for session_id in {session for session, _ in reported}:
                manager = await SessionManager.open(store, session_id, clock=FakeClock(), ids=sequential_ids())
                wanted = [entry for session, entry in reported if session == session_id]
                stored = [entry.id for entry in manager.entries]
                # At most the append that was under way may have come through without its report.
                assert stored[: len(wanted)] == wanted
                assert len(stored) <= len(wanted) + 1
                assert len(manager.messages) == len(stored)

    assert len({session for session, _ in reported}) > ROUNDS
