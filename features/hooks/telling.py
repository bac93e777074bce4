"""Telling one event to one hook."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from features.contracts.processes import ProcessRunner, ProcessSpawnRequest, SecretRedactor
from features.hooks.hook import Errand, Hook
from features.hooks.payload import encoded

if TYPE_CHECKING:
    import httpx2

__all__ = ["HookFailedError", "Teller"]

_SHOWN_OUTPUT = 500
_LONGEST_FACT = 2000


class HookFailedError(Exception):
    """The text says what a hook did instead."""


class Teller:
    """Runs the commands and makes the calls. Leave it as an async context manager.

    Args:
        ids: names the payload files.
    """

    def __init__(self, processes: ProcessRunner, redactor: SecretRedactor, ids: Callable[[], str]) -> None:
        self._processes = processes
        self._redactor = redactor
        self._ids = ids
        self._stack = AsyncExitStack()
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        await self._stack.aclose()

    async def tell(self, hook: Hook, errand: Errand) -> None:
        """
        Raises:
            HookFailedError: it failed, or took too long.
            ModelMustAct: the process could not be started.
        """
        body = await asyncio.to_thread(encoded, errand.payload, self._redactor.redact)
        if hook.url:
            await self._post(hook, errand, body)
        else:
            await self._run(hook, errand, body)

    async def _run(self, hook: Hook, errand: Errand, body: bytes) -> None:
        path = errand.workspace / ".pumice" / "tmp" / f"hook-{self._ids()}.json"
        await asyncio.to_thread(_write_new, path, body)
        request = ProcessSpawnRequest(
            argv=hook.argv,
            cwd=errand.workspace,
            purpose="hook",
            environment=self._facts(errand) | {"PUMICE_PAYLOAD": str(path)},
            time_zone=errand.time_zone,
            workspace=errand.workspace,
            owner=True,  # whoever wrote the configuration
        )
        try:
            async with asyncio.timeout(hook.timeout.total_seconds()):
                code, said = await self._finished(request)
        except TimeoutError:
            raise HookFailedError(f"stopped after {hook.timeout.total_seconds():g} s") from None
        finally:
            path.unlink(missing_ok=True)
        if code != 0:
            raise HookFailedError(f"exited {code}" + (f": {said}" if said else ""))

    async def _finished(self, request: ProcessSpawnRequest) -> tuple[int, str]:
        """The exit status, and the end of what it said."""
        said = ""
        async with self._processes.start(request) as process:
            async for piece in process.output():
                said = (said + piece)[-_SHOWN_OUTPUT:]
            return await process.wait(), " ".join(said.split())

    async def _post(self, hook: Hook, errand: Errand, body: bytes) -> None:
        import httpx2

        if self._client is None:
            self._client = await self._stack.enter_async_context(httpx2.AsyncClient(follow_redirects=False))
        headers = {"content-type": "application/json", "x-pumice-event": hook.event, "user-agent": "pumice-hook"}
        seconds = hook.timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds), self._client.stream("POST", hook.url, content=body, headers=headers) as response:
                if not response.is_success:
                    raise HookFailedError(f"answered with status {response.status_code}")
        except (TimeoutError, httpx2.TimeoutException):
            raise HookFailedError(f"no answer in {seconds:g} s") from None
        except httpx2.HTTPError as error:
            raise HookFailedError(f"could not be reached: {type(error).__name__}") from None

    def _facts(self, errand: Errand) -> dict[str, str]:
        return {
            name: self._redactor.redact(fact).replace("\0", "")[:_LONGEST_FACT].encode("utf-8", "replace").decode()
            for name, fact in errand.facts.items()
        }


def _write_new(path: Path, body: bytes) -> None:
    """For the host's user alone, and never through something that stands there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(body)
