"""Sessions as files of the pi session format."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from features.contracts.clock import Clock
from features.contracts.database import Database
from features.contracts.errors import UserMustAct
from features.contracts.sessions import SessionEntry, SessionHeader, SessionLines, SessionSummary, TransactionWork
from features.sessions.codec import encode, well_formed
from features.sessions.digest import digest
from features.sessions.leaf_marks import leaf_of
from features.sessions.session_file import SessionFile, create_session_file, read_session_file
from features.sessions.session_lines import began_at, entries_of
from features.sessions.session_places import FilePlaces, FolderPlaces, Place, SessionPlaces
from features.sessions.timestamps import iso_text, iso_time

__all__ = ["JsonlSessionStore"]

log = logging.getLogger("pumice.sessions")

T = TypeVar("T")

_MOST_HELD = 32
_MOST_SUMMARIES = 1000
_VERSION = 3


class JsonlSessionStore:
    """Implements ``SessionStore`` over files; what is appended is on the disk, and pi reads it.

    A session that was loaded or written is held against other programs until the store is closed, or until 32 others were used since.
    Lists, summaries and lines hold nothing. Make it with ``in_folder`` or ``on_file``; ``warnings`` say what was amiss in that file.

    Args:
        where: says which files there are.
        books: where the work that comes with an append is done, right after the entries are on the disk. Without it such work is refused.

    Raises, from every call that reads or writes a session:
        UserMustAct: another program has the file, or it holds no session.
        OperatorMustAct: the disk will not take it; nothing was written then.
    """

    def __init__(self, where: SessionPlaces, *, clock: Clock, ids: Callable[[], str], books: Database | None = None) -> None:
        self.warnings: tuple[str, ...] = ()
        self._where = where
        self._books = books
        self._clock = clock
        self._ids = ids
        self._held: OrderedDict[str, SessionFile] = OrderedDict()
        self._summaries: OrderedDict[tuple[Path, int, int], SessionSummary | None] = OrderedDict()
        self._busy = asyncio.Lock()

    @classmethod
    def in_folder(cls, folder: Path, *, clock: Clock, ids: Callable[[], str]) -> Self:
        """A folder of sessions, one file each."""
        return cls(FolderPlaces(folder), clock=clock, ids=ids)

    @classmethod
    def on_file(cls, path: Path, scope: str, *, cwd: str, clock: Clock, ids: Callable[[], str], books: Database | None = None) -> Self:
        """One file as the current session of ``scope``, made if it is not there; sessions that begin meanwhile lie beside it.

        Raises:
            UserMustAct: another program has the file, or it holds no session; it is left as it is.
        """
        timestamp = iso_text(clock.now())
        if not path.exists() or not path.stat().st_size:
            header = SessionHeader(version=_VERSION, id=ids(), timestamp=timestamp, cwd=cwd)
            create_session_file(path, SessionLines(header=encode(header), entries=[], leaf=None), over_empty=True)
        file = SessionFile.open(path, ids=ids, timestamp=timestamp)
        store = cls(FilePlaces(path, scope, file.header.id), clock=clock, ids=ids, books=books)
        store.warnings = file.warnings
        store._held[file.header.id] = file
        return store

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all files."""
        async with self._busy:
            while self._held:
                self._held.popitem()[1].close()

    async def create(self, scope: str, header: SessionHeader, *, make_current: bool = True) -> None:
        lines = SessionLines(header=encode(well_formed(header)), entries=[], leaf=None)

        def work() -> None:
            self._make(scope, header.id, lines)
            if make_current:
                self._where.set_current(scope, header.id)

        await self._do(work)

    async def append(
        self, session_id: str, entries: Sequence[SessionEntry], *, leaf: str | None, also: TransactionWork | None = None
    ) -> None:
        if also is not None and self._books is None:
            raise ValueError("a store of files has no transaction that other work could join")
        await self._do(lambda: self._file(session_id).append(entries, leaf))
        if also is not None and self._books is not None:
            await self._books.write(also)

    async def set_leaf(self, session_id: str, leaf: str | None) -> None:
        await self._do(lambda: self._file(session_id).append((), leaf))

    async def load(self, session_id: str) -> tuple[SessionHeader, list[SessionEntry], str | None]:
        def work() -> tuple[SessionHeader, list[SessionEntry], str | None]:
            file = self._file(session_id)
            header = file.header if file.header.id == session_id else msgspec.structs.replace(file.header, id=session_id)
            return header, list(file.entries), file.leaf

        return await self._do(work)

    async def current(self, scope: str) -> str | None:
        return await self._do(lambda: self._where.current(scope))

    async def make_current(self, scope: str, session_id: str) -> None:
        def work() -> None:
            if self._place(session_id).scope != scope:
                raise KeyError(session_id)
            self._where.set_current(scope, session_id)

        await self._do(work)

    async def list(self, scope: str | None = None, *, limit: int = 100) -> list[SessionSummary]:
        """Sessions, the newest first. A file that holds none is passed over."""

        def work() -> list[SessionSummary]:
            found = [summary for place in self._where.all(scope) if (summary := self._summary(place)) is not None]
            return sorted(found, key=lambda summary: (summary.modified_at, summary.id), reverse=True)[: max(limit, 0)]

        return await self._do(work)

    async def summary(self, session_id: str) -> SessionSummary | None:
        def work() -> SessionSummary | None:
            place = self._where.find(session_id)
            return None if place is None else self._summary(place)

        return await self._do(work)

    async def lines(self, session_id: str) -> SessionLines:
        def work() -> SessionLines:
            place = self._place(session_id)
            text = read_session_file(place.path, ids=self._ids, timestamp=iso_text(self._clock.now()))
            return SessionLines(header=text.header_line, entries=text.lines, leaf=leaf_of(text.entries))

        return await self._do(work)

    async def take_in(self, scope: str, session_id: str, lines: SessionLines) -> None:
        def work() -> None:
            entries_of(lines)
            self._make(scope, session_id, lines)

        await self._do(work)

    async def replace(self, session_id: str, lines: SessionLines, *, was: SessionLines) -> None:
        def work() -> None:
            entries_of(lines)
            file = self._file(session_id)
            if (file.line_count, file.leaf) != (len(was.entries), was.leaf):
                raise ValueError(f"session {session_id} has changed meanwhile")
            file.replace(lines)

        await self._do(work)

    async def delete(self, session_id: str) -> bool:
        def work() -> bool:
            place = self._where.find(session_id)
            if place is None:
                return False
            self._file(session_id).delete()
            del self._held[session_id]
            self._where.deleted(place)
            return True

        return await self._do(work)

    async def _do(self, work: Callable[[], T]) -> T:
        """Carry something out on a thread, one thing at a time; a cancelled call ends when it is done."""
        async with self._busy:
            task = asyncio.create_task(asyncio.to_thread(work))
            cancelled: asyncio.CancelledError | None = None
            while not task.done():
                try:
                    await asyncio.wait({task})
                except asyncio.CancelledError as error:
                    cancelled = error
            if cancelled is not None:
                raise cancelled
            return task.result()

    def _make(self, scope: str, session_id: str, lines: SessionLines) -> None:
        if self._where.find(session_id) is not None:
            raise ValueError(f"session {session_id} is there already")
        place = self._where.new(scope, session_id)
        create_session_file(place.path, lines)
        self._where.made(place)

    def _place(self, session_id: str) -> Place:
        place = self._where.find(session_id)
        if place is None:
            raise KeyError(session_id)
        return place

    def _file(self, session_id: str) -> SessionFile:
        """The session's file, held."""
        file = self._held.get(session_id)
        if file is None:
            file = SessionFile.open(self._place(session_id).path, ids=self._ids, timestamp=iso_text(self._clock.now()))
            if file.warnings:
                facts = {"file": str(file.path), "warnings": list(file.warnings)}
                log.warning("session file put in order", extra={"facts": facts})
            self._held[session_id] = file
            if len(self._held) > _MOST_HELD:
                self._held.popitem(last=False)[1].close()
        self._held.move_to_end(session_id)
        return file

    def _summary(self, place: Place) -> SessionSummary | None:
        status = place.path.stat()
        key = (place.path, status.st_mtime_ns, status.st_size)
        if key not in self._summaries:
            self._summaries[key] = self._read_summary(place)
            if len(self._summaries) > _MOST_SUMMARIES:
                self._summaries.popitem(last=False)
        return self._summaries[key]

    def _read_summary(self, place: Place) -> SessionSummary | None:
        try:
            text = read_session_file(place.path, ids=self._ids, timestamp=iso_text(self._clock.now()))
        except UserMustAct as error:
            log.warning("session file passed over", extra={"facts": {"file": str(place.path), "error": str(error)}})
            return None
        found = digest(text.entries)
        created_at = began_at(text.header_line, text.entries)
        return SessionSummary(
            id=place.session_id,
            scope=place.scope,
            name=found.name or "",
            created_at=created_at,
            modified_at=iso_time(found.modified_at) if found.modified_at else created_at,
            message_count=found.messages,
            first_message=found.first_message,
        )
