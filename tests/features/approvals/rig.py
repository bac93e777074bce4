"""A session as the approvals see it: a real database, other extensions beside them, a person who answers as told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from features.approvals import ApprovalOptions, Approvals
from features.contracts.extension_events import ExtensionEvent, ProcessSpawning, ToolCalled
from features.contracts.extensions import ExtensionApi
from features.contracts.messages import ToolCall
from features.contracts.processes import ProcessSpawnEvent, ProcessSpawnRequest
from features.contracts.testing import FakeClock
from features.storage import Database

__all__ = ["Asked", "Session"]

Handler = Callable[[Any], Awaitable[None]]


class Asked:
    """A question that was put to the person."""

    def __init__(self, text: str, options: Sequence[str], timeout_s: float | None, owners_only: Sequence[str]) -> None:
        self.text = text
        self.options = list(options)
        self.timeout_s = timeout_s
        self.owners_only = list(owners_only)


class _Person:
    """Implements ``UserInterface``. ``answer`` is what they choose next: an option, None for nothing in time, an exception to raise."""

    def __init__(self) -> None:
        self.interactive = True
        self.answer: str | Exception | None = None
        self.asked: list[Asked] = []
        self.thinking: asyncio.Event | None = None

    async def select(
        self, title: str, options: Sequence[str], *, timeout_s: float | None = None, owners_only: Sequence[str] = ()
    ) -> str | None:
        self.asked.append(Asked(title, options, timeout_s, owners_only))
        if self.thinking is not None:
            await self.thinking.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def confirm(self, title: str, message: str = "", *, timeout_s: float | None = None) -> bool:
        raise AssertionError

    async def input(self, title: str, placeholder: str = "", *, timeout_s: float | None = None) -> str | None:
        raise AssertionError

    def status(self, key: str, text: str | None) -> None:
        raise AssertionError

    async def notify(self, message: str, kind: Literal["info", "warning", "error"] = "info") -> None:
        raise AssertionError


class _View:
    def __init__(self, address: str) -> None:
        self.address = address


class Session:
    """Dispatches gates as the contract says: by priority, until one says no; whoever raises closes it."""

    def __init__(self, database: Database, address: str = "telegram:1/7", **options: Any) -> None:
        self.person = _Person()
        self.ui = self.person
        self.session = _View(address)
        self.approvals = Approvals(ApprovalOptions(**options), database, FakeClock())
        self._handlers: list[tuple[int, int, type[ExtensionEvent], Handler]] = []

    async def start(self) -> "Session":
        spec = self.approvals.extension()
        await spec.activate(cast("ExtensionApi", self))
        return self

    def on(self, event: type[ExtensionEvent], handler: Handler, *, priority: int = 0) -> Callable[[], None]:
        self._handlers.append((-priority, len(self._handlers), event, handler))
        return lambda: None

    async def call(self, tool: str, **arguments: Any) -> ToolCalled:
        event = ToolCalled(ToolCall(id="c", name=tool, arguments=arguments), arguments, owner=False)
        await self._dispatch(event)
        return event

    async def spawn(self, *argv: str, purpose: str = "bash") -> ProcessSpawning:
        request = ProcessSpawnRequest(argv=argv, cwd=Path("/work"), purpose=purpose)
        event = ProcessSpawning(ProcessSpawnEvent(request=request, argv=("sandbox", *argv), cwd=Path("/"), environment={}))
        await self._dispatch(event)
        return event

    async def _dispatch(self, event: ToolCalled | ProcessSpawning) -> None:
        for _, _, kind, handler in sorted(self._handlers, key=lambda each: each[:2]):
            if isinstance(event, kind) and event.refusal is None:
                try:
                    await handler(event)
                except Exception as error:
                    event.cancel(f"handler failed: {error}")
