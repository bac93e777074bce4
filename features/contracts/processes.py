"""The processes that are started for an agent, and the secrets that none of them may see or tell."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import msgspec

__all__ = [
    "ProcessRunner",
    "ProcessSpawn",
    "ProcessSpawnEvent",
    "ProcessSpawnHook",
    "ProcessSpawnPolicy",
    "ProcessSpawnRequest",
    "RunningProcess",
    "SecretRedactor",
    "StreamRedactor",
]


class ProcessSpawnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to start.

    ``purpose`` names the spawner (``bash``, ``mcp``, ``watcher``, ``hook``). ``environment`` is added after filtering and never filtered.
    ``owner`` says whether an owner of the host asked for it.
    """

    argv: tuple[str, ...]
    cwd: Path
    purpose: str
    environment: Mapping[str, str] = {}
    time_zone: str | None = None
    workspace: Path | None = None
    owner: bool = False


class ProcessSpawn(msgspec.Struct, frozen=True, kw_only=True):
    """What is started in the end; ``environment`` is the child's whole environment."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]


class ProcessSpawnEvent(msgspec.Struct, kw_only=True):
    """A spawn on its way through the hooks. A hook changes it in place or raises; raising fails the spawn."""

    request: ProcessSpawnRequest
    argv: tuple[str, ...]
    cwd: Path
    environment: dict[str, str]


class ProcessSpawnHook(Protocol):
    """Contract. Runs in order of registration, sees what earlier hooks made of the spawn, and raises to refuse it."""

    async def __call__(self, event: ProcessSpawnEvent) -> None: ...


class ProcessSpawnPolicy(Protocol):
    """Contract.

    - ``prepare`` gives command, folder and complete environment; the spawner passes them on as they are and inherits nothing.
    - A hook that raises fails the spawn with ModelMustAct; there is no fallback.
    """

    async def prepare(self, request: ProcessSpawnRequest) -> ProcessSpawn: ...


class StreamRedactor(Protocol):
    """Redacts a text that arrives in pieces; holds back only what could be the beginning of a secret.

    ``feed`` gives what is safe to show now; ``finish`` gives the rest. What the calls return, joined, is ``redact`` of the whole.
    """

    def feed(self, piece: str) -> str: ...

    def finish(self) -> str: ...


class SecretRedactor(Protocol):
    """Contract.

    - Every known value, also in its base64, URL-encoded, hex and JSON-escaped forms, becomes ``[REDACTED]``.
    - Time is linear in the text, whatever the number of secrets.
    - ``add`` takes effect for every later call; a value under 8 characters raises OperatorMustAct, ``name`` says whose it is.
    """

    def add(self, value: str, *, name: str) -> None: ...

    def redact(self, text: str) -> str: ...

    def contains_secret(self, text: str) -> bool: ...

    def stream(self) -> StreamRedactor: ...


class RunningProcess(Protocol):
    """A started child in a process group of its own.

    Contract.

    - ``output`` gives what the child writes, both streams interleaved as they arrive, decoded as UTF-8 with replacement and redacted; it
      ends once the child has exited, at most a moment later, also when a grandchild still holds the pipe.
    - ``wait`` gives the exit status, negative for a signal.
    - ``kill`` ends the whole process group for good, the child's own children too; it may be called at any time.
    """

    pid: int

    def output(self) -> AsyncIterator[str]: ...

    async def wait(self) -> int: ...

    async def kill(self) -> None: ...


class ProcessRunner(Protocol):
    """The one place that starts processes: asks the policy, starts the child, gives it no standard input.

    Leaving the ``async with`` kills the group if it still lives. ModelMustAct when the policy refuses or the command cannot be started.
    """

    def start(self, request: ProcessSpawnRequest) -> AbstractAsyncContextManager[RunningProcess]: ...
