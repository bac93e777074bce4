"""A running `claude`: its process, its lines, and its end.

The SDK's own transport hands the whole environment of the host on and takes seconds to end the process; this one does neither.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from claude_agent_sdk import CLIConnectionError, Transport

__all__ = ["ClaudeTransport"]

_LONGEST_LINE = 64 << 20
_STDERR_LINES = 20
_END_S = 5.0


class ClaudeTransport(Transport):
    """Implements the SDK's ``Transport``. The process leads a group of its own, which ends with it."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], cwd: str) -> None:
        self._command = command
        self._environment = environment
        self._cwd = cwd
        self._process: asyncio.subprocess.Process | None = None
        self._writing = asyncio.Lock()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._listening: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._cwd,
            env=self._environment,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        self._listening = asyncio.create_task(self._listen())

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def is_ready(self) -> bool:
        return self.alive

    async def write(self, data: str) -> None:
        stdin = self._process.stdin if self._process is not None else None
        if not self.alive or stdin is None:
            raise CLIConnectionError(self._how_it_ended())
        async with self._writing:
            try:
                stdin.write(data.encode())
                await stdin.drain()
            except (ConnectionError, RuntimeError) as error:
                raise CLIConnectionError(self._how_it_ended()) from error

    async def end_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        return self._messages()

    def kill(self) -> None:
        """End it now, with all that it started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        self.kill()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        if self._process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await self._process.wait()

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._line(self._process.stdout):
            if not line.startswith(b"{"):
                continue  # notes that some builds write there
            try:
                message = msgspec.json.decode(line)
            except msgspec.MsgspecError as error:
                raise CLIConnectionError(f"claude wrote a line that cannot be read: {error}") from error
            yield message
        await self._process.wait()
        if self._listening is not None:
            await asyncio.wait({self._listening}, timeout=1)
        raise CLIConnectionError(self._how_it_ended())

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        try:
            return await stdout.readline()
        except ValueError as error:
            raise CLIConnectionError(f"claude wrote a line of more than {_LONGEST_LINE >> 20} MB") from error

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(8192):
            self._stderr.extend(chunk.decode(errors="replace")[-2000:].splitlines())

    def _how_it_ended(self) -> str:
        code = self._process.returncode if self._process is not None else None
        words = " ".join(line.strip() for line in self._stderr if line.strip())
        return f"claude ended with exit status {code}" + (f": {words[-500:]}" if words else "")
