"""A started child: its output, its end, and the end of all that it started."""

import asyncio
import codecs
import logging
import os
import subprocess
from collections.abc import AsyncIterator

from features.contracts.processes import StreamRedactor
from features.processes.process_tree import kill_tree

__all__ = ["RunningProcess"]

log = logging.getLogger("pumice.processes")

_READ_BYTES = 65_536
_QUIET_S = 0.2
"""After the child's exit its output ends when nothing has come for so long,"""
_DRAIN_S = 1.0
_DRAIN_BYTES = 1_048_576
"""or after so long or so much, when a grandchild holds the pipe and goes on writing. What the child itself wrote is in the pipe by then."""
_POLL_S = 0.05
_REAP_S = 5.0
"""A killed process that is not gone by then hangs in the kernel; it is given up and logged."""


class RunningProcess:
    """Implements ``features.contracts.processes.RunningProcess``.

    The child is left unreaped until ``close``: as long as it is a zombie, its process id and group id cannot be given to a stranger, so a
    kill can never hit one.
    """

    def __init__(self, process: subprocess.Popen[bytes], redactor: StreamRedactor, loop: asyncio.AbstractEventLoop) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._pipe = process.stdout
        self._redactor = redactor
        self._loop = loop
        self._exited: asyncio.Future[int] = loop.create_future()
        self._drain_until = 0.0
        self._drained = 0
        self._closed = False
        os.set_blocking(self._pipe.fileno(), False)
        self._pidfd = _open_pidfd(process.pid)
        if self._pidfd is not None:
            loop.add_reader(self._pidfd, self._look)
        else:
            self._poll()

    async def output(self) -> AsyncIterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := await self._read():
            if shown := self._redactor.feed(decoder.decode(data)):
                yield shown
        rest = self._redactor.feed(decoder.decode(b"", final=True)) + self._redactor.finish()
        if rest:
            yield rest

    async def wait(self) -> int:
        return await asyncio.shield(self._exited)

    async def kill(self) -> None:
        if self._closed:
            return
        kill_tree(self.pid)
        await asyncio.wait({self._exited}, timeout=_REAP_S)

    async def close(self) -> None:
        """Kill what still lives and reap the child; a cancelled caller waits for this too."""
        if self._closed:
            return
        self._closed = True
        kill_tree(self.pid)
        reaping = self._loop.create_task(self._reap())
        try:
            await asyncio.shield(reaping)
        except asyncio.CancelledError:
            await asyncio.wait({reaping})
            raise

    async def _reap(self) -> None:
        try:
            await asyncio.wait({self._exited}, timeout=_REAP_S)
        finally:
            if self._pidfd is not None:
                self._loop.remove_reader(self._pidfd)
                os.close(self._pidfd)
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()
            if self._process.poll() is None:
                log.warning("killed process does not end", extra={"facts": {"pid": self.pid}})

    def _look(self) -> None:
        """Note the exit status if the child has ended."""
        if self._exited.done() or (status := self._status()) is None:
            return
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        self._drain_until = self._loop.time() + _DRAIN_S
        self._exited.set_result(status)

    def _status(self) -> int | None:
        if not hasattr(os, "waitid"):  # macOS; there the child is reaped at once
            return self._process.poll()
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def _poll(self) -> None:
        self._look()
        if not self._exited.done():
            self._loop.call_later(_POLL_S, self._poll)

    async def _read(self) -> bytes:
        """The next bytes; none at the end of the pipe, or once the child has exited and no more comes."""
        while not self._closed and self._drained < _DRAIN_BYTES:
            try:
                data = os.read(self._pipe.fileno(), _READ_BYTES)
            except BlockingIOError:
                if not await self._more_may_come():
                    break
            else:
                self._drained += len(data) if self._exited.done() else 0
                return data
        return b""

    async def _more_may_come(self) -> bool:
        """Wait for the pipe or the exit; False when the child has exited and its pipe stays quiet."""
        readable = self._loop.create_future()
        pipe = self._pipe.fileno()
        self._loop.add_reader(pipe, _resolve, readable)
        try:
            if not self._exited.done():
                await asyncio.wait({readable, self._exited}, return_when=asyncio.FIRST_COMPLETED)
                return True
            await asyncio.wait({readable}, timeout=max(0.0, min(_QUIET_S, self._drain_until - self._loop.time())))
            return readable.done()
        finally:
            if not self._closed:
                self._loop.remove_reader(pipe)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that is readable once the child has ended; None on systems without, where the child is polled for."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
