"""The one place in the house that starts processes."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from features.contracts.errors import ModelMustAct
from features.contracts.processes import ProcessSpawn, ProcessSpawnPolicy, ProcessSpawnRequest, SecretRedactor
from features.processes.running_process import RunningProcess

__all__ = ["ProcessRunner"]


class ProcessRunner:
    """Implements ``features.contracts.processes.ProcessRunner``.

    A child leads a session and a process group of its own, has no standard input, and gets exactly the environment that the policy made.
    PR_SET_PDEATHSIG is not set: it reaches only the direct child, and setting it needs code between fork and exec, which is unsafe in a
    process with threads. A host that is killed leaves its service manager to end what it started.
    """

    def __init__(self, policy: ProcessSpawnPolicy, redactor: SecretRedactor) -> None:
        self._policy = policy
        self._redactor = redactor

    def start(self, request: ProcessSpawnRequest) -> AbstractAsyncContextManager[RunningProcess]:
        """Start a process for the length of an ``async with``. Read ``output`` to its end before ``wait``: a full pipe stops the child."""
        return self._started(request)

    @asynccontextmanager
    async def _started(self, request: ProcessSpawnRequest) -> AsyncIterator[RunningProcess]:
        spawn = await self._policy.prepare(request)
        # No await between the fork and the try: a cancelled caller always finds the kill below.
        process = RunningProcess(_fork(spawn), self._redactor.stream(), asyncio.get_running_loop())
        try:
            yield process
        finally:
            await process.close()


def _fork(spawn: ProcessSpawn) -> subprocess.Popen[bytes]:
    if not spawn.argv:
        raise ModelMustAct("there is no command to start")
    if not spawn.cwd.is_dir():
        raise ModelMustAct(f"Working directory does not exist: {spawn.cwd}")
    try:
        return subprocess.Popen(
            spawn.argv,
            cwd=spawn.cwd,
            env=dict(spawn.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise ModelMustAct(f"cannot start {spawn.argv[0]!r}: {reason}") from problem
