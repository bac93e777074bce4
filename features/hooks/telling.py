"""Telling one event to one hook."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from features.contracts.processes import SecretRedactor
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

    def __init__(self, redactor: SecretRedactor, ids: Callable[[], str]) -> None:
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
            Exception: the process policy's and the session's own refusals.
        """
        body = await asyncio.to_thread(encoded, errand.payload, self._redactor.redact)
        if hook.url:
            await self._post(hook, errand, body)
        else:
            await self._run(hook, errand, body)

    async def _run(self, hook: Hook, errand: Errand, body: bytes) -> None:
        path = errand.api.session.workspace / ".pumice" / "tmp" / f"hook-{self._ids()}.json"
        await asyncio.to_thread(_write_new, path, body)
        try:
            environment = self._facts(errand) | {"PUMICE_PAYLOAD": str(path)}
            result = await errand.api.exec(hook.argv, timeout=hook.timeout, environment=environment)
        finally:
            path.unlink(missing_ok=True)
        if result.killed:
            raise HookFailedError(f"stopped after {hook.timeout.total_seconds():g} s")
        if result.code != 0:
            said = " ".join(result.output.split())[-_SHOWN_OUTPUT:]
            raise HookFailedError(f"exited {result.code}" + (f": {said}" if said else ""))

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
