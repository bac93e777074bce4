"""The entry type of the slice."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from features.contracts.clock import Clock
from features.contracts.extension_events import EXTENSION_EVENTS, ExtensionEvent
from features.contracts.extensions import ExtensionApi, ExtensionSpec
from features.contracts.processes import ProcessRunner, SecretRedactor
from features.hooks.hook import Errand, Hook
from features.hooks.payload import facts_of, plain
from features.hooks.telling import Teller

__all__ = ["Hooks"]

log = logging.getLogger("pumice.hooks")

_LAST = -1_000_000
"""Hooks hear of what extensions have made of an event, and not of what one of them forbade."""
_MOST_WAITING = 64
_AT_ONCE = 4
_GOODBYE_S = 2.0


class Hooks:
    """Works while it is entered; ``spec`` is the extension that listens in each session.

    Leaving waits a moment for what is still to be told.

    Raises:
        ValueError: a hook names an event that there is not.
    """

    def __init__(
        self, hooks: Sequence[Hook], *, processes: ProcessRunner, redactor: SecretRedactor, clock: Clock, ids: Callable[[], str]
    ) -> None:
        events = {event.name: event for event in EXTENSION_EVENTS}
        unknown = [hook.event for hook in hooks if hook.event not in events]
        if unknown:
            raise ValueError(f"there is no event {unknown[0]!r}")
        self._clock = clock
        self._ids = ids
        self._teller = Teller(processes, redactor, ids)
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._lanes = [_Lane(hook, events[hook.event], self._teller, self._room, ids) for hook in hooks]

    async def __aenter__(self) -> Self:
        for lane in self._lanes:
            lane.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                for lane in self._lanes:
                    await lane.empty.wait()
        for lane in self._lanes:
            await lane.close()
        await self._teller.close()

    def spec(self) -> ExtensionSpec:
        return ExtensionSpec(name="hooks", activate=self._activate, priority=_LAST)

    async def _activate(self, api: ExtensionApi) -> None:
        for lane in self._lanes:
            api.on(lane.event, partial(self._heard, api, lane), priority=_LAST)

    async def _heard(self, api: ExtensionApi, lane: "_Lane", event: ExtensionEvent) -> None:
        """Puts the event into the hook's queue; the one place where a defect of that is caught, since it must not forbid anything."""
        try:
            lane.put(self._errand(api, event))
        except Exception:
            log.exception("event not told", extra={"facts": {"event": event.name, "error_id": self._ids()}})

    def _errand(self, api: ExtensionApi, event: ExtensionEvent) -> Errand:
        session, data = api.session, plain(event)
        about = {
            "event": event.name,
            "session_id": session.id,
            "chat": session.address,
            "workspace": str(session.workspace),
            "model": session.model.reference,
            "thinking": session.thinking,
        }
        facts = {f"PUMICE_{name.upper()}": fact for name, fact in about.items()} | facts_of(data)
        payload = {**about, "at": self._clock.now().isoformat(), "session_name": session.name, "data": data}
        return Errand(workspace=session.workspace, time_zone=session.time_zone, facts=facts, payload=payload)


class _Lane:
    """One hook: what waits for it, in order, and the task that tells it. ``empty`` is set while there is nothing to tell."""

    def __init__(self, hook: Hook, event: type[ExtensionEvent], teller: Teller, room: asyncio.Semaphore, ids: Callable[[], str]) -> None:
        self.event = event
        self.empty = asyncio.Event()
        self.empty.set()
        self._hook = hook
        self._teller = teller
        self._room = room
        self._ids = ids
        self._waiting: deque[Errand] = deque()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failing = False
        self._full = False

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work(), name=f"hook {self._hook.event}")

    async def close(self) -> None:
        self.empty.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def put(self, errand: Errand) -> None:
        """Keep it, or drop it where there is no room."""
        if len(self._waiting) >= _MOST_WAITING:
            if not self._full:
                self._log(logging.WARNING, "hook is too slow; events are dropped")
            self._full = True
            return
        if self._full and not self._waiting:
            self._full = False
            self._log(logging.INFO, "hook has caught up")
        self._waiting.append(errand)
        self.empty.clear()
        self._arrived.set()

    async def _work(self) -> None:
        while True:
            while self._waiting:
                errand = self._waiting.popleft()
                async with self._room:
                    await self._tell(errand)
            self.empty.set()
            self._arrived.clear()
            await self._arrived.wait()

    async def _tell(self, errand: Errand) -> None:
        """The one place where a hook's failure, of whatever kind, becomes a line in the log."""
        try:
            await self._teller.tell(self._hook, errand)
        except Exception as error:
            if not self._failing:
                self._log(logging.WARNING, "hook failing", reason=str(error) or type(error).__name__, error_id=self._ids())
            self._failing = True
            return
        if self._failing:
            self._log(logging.INFO, "hook works again")
        self._failing = False

    def _log(self, level: int, what: str, **facts: str) -> None:
        to = self._hook.argv[0] if self._hook.argv else urlsplit(self._hook.url).hostname  # the rest of an address may be its key
        log.log(level, what, extra={"facts": {"event": self._hook.event, "to": to, **facts}})
