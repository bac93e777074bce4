"""The sessions of a data directory: through the host that runs, else from the database itself; in one form both ways."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bot.cli.host_data import nothing_stored, open_database, running_client
from bot.config import Config
from features.contracts.session_transfer import CheckedSession, ExportFormat, ImportedSession

if TYPE_CHECKING:
    from bot.http.client import HostClient
    from features.contracts.sessions import SessionStore
    from features.sessions import SessionTransfer

__all__ = ["SessionSource", "open_sessions"]

_MOST_LISTED = 10_000


class SessionSource(Protocol):
    """Contract. Ids are whole ids of sessions that are there; summaries and sessions are as ``/api/sessions`` gives them."""

    async def list(self) -> list[dict[str, Any]]: ...

    async def show(self, session_id: str) -> dict[str, Any]: ...

    async def delete(self, session_id: str) -> None: ...

    async def export(self, session_id: str, form: ExportFormat) -> bytes: ...

    async def import_file(self, data: bytes, chat: str) -> ImportedSession: ...

    async def check(self, session_id: str, *, repair: bool) -> CheckedSession: ...


@asynccontextmanager
async def open_sessions(config: Config, *, make: bool = False) -> AsyncIterator[SessionSource | None]:
    """The sessions; None where no host ever ran.

    Args:
        make: make the database where there is none.
    """
    async with running_client(config) as host:
        if host is not None:
            yield _OfHost(host)
            return
    if nothing_stored(config) and not make:
        yield None
        return
    from bot.clock import SystemClock
    from bot.ids import new_id
    from features.sessions import DatabaseSessionStore, SessionTransfer

    async with open_database(config) as database:
        store = DatabaseSessionStore(database)
        originals: Path = config.host.data_dir / "damaged"
        yield _Stored(store, SessionTransfer(store, originals=originals, clock=SystemClock(), ids=new_id))


class _OfHost:
    def __init__(self, host: "HostClient") -> None:
        self._host = host

    async def list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self._host.get("/api/sessions")
        return found

    async def show(self, session_id: str) -> dict[str, Any]:
        found: dict[str, Any] = await self._host.get(f"/api/sessions/{session_id}")
        return found

    async def delete(self, session_id: str) -> None:
        await self._host.delete(f"/api/sessions/{session_id}")

    async def export(self, session_id: str, form: ExportFormat) -> bytes:
        return await self._host.download(f"/api/sessions/{session_id}/export", format=form)

    async def import_file(self, data: bytes, chat: str) -> ImportedSession:
        body = {"chat": chat, "data": base64.b64encode(data).decode()}
        return msgspec.convert(await self._host.post("/api/sessions/import", body), ImportedSession)

    async def check(self, session_id: str, *, repair: bool) -> CheckedSession:
        return msgspec.convert(await self._host.post(f"/api/sessions/{session_id}/check", {"repair": repair}), CheckedSession)


class _Stored:
    def __init__(self, store: "SessionStore", transfer: "SessionTransfer") -> None:
        self._store = store
        self._transfer = transfer

    async def list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = msgspec.to_builtins(await self._store.list(limit=_MOST_LISTED))
        return found

    async def show(self, session_id: str) -> dict[str, Any]:
        header, entries, leaf = await self._store.load(session_id)
        summary = await self._store.summary(session_id)
        shown: dict[str, Any] = msgspec.to_builtins({"summary": summary, "header": header, "entries": entries, "leaf_id": leaf})
        return shown

    async def delete(self, session_id: str) -> None:
        await self._store.delete(session_id)

    async def export(self, session_id: str, form: ExportFormat) -> bytes:
        return (await self._transfer.export(session_id, form)).data

    async def import_file(self, data: bytes, chat: str) -> ImportedSession:
        return await self._transfer.import_file(data, chat)

    async def check(self, session_id: str, *, repair: bool) -> CheckedSession:
        return await self._transfer.check(session_id, repair=repair)
