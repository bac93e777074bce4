"""Sessions that live as long as the process, for one-shot answers and for tests."""

from collections.abc import Sequence

import msgspec

from features.contracts.sessions import SessionEntry, SessionHeader, SessionLines, SessionSummary, TransactionWork
from features.sessions.codec import decode_header, encode, well_formed
from features.sessions.digest import digest
from features.sessions.session_lines import began_at, entries_of
from features.sessions.timestamps import iso_text, iso_time

__all__ = ["MemorySessionStore"]


class _Session:
    def __init__(self, scope: str, header: SessionHeader) -> None:
        self.scope = scope
        self.header = well_formed(header)
        self.header_line = encode(self.header)
        self.entries: list[SessionEntry] = []
        self.lines: list[str] = []
        self.ids: set[str] = set()
        self.leaf: str | None = None
        self.name = ""
        self.messages = 0
        self.first_message = ""
        self.created_at = self.modified_at = iso_text(began_at(self.header_line, ()))

    @classmethod
    def of(cls, scope: str, session_id: str, lines: SessionLines) -> "_Session":
        entries = entries_of(lines)
        began = iso_text(began_at(lines.header, entries))
        header = decode_header(lines.header) or SessionHeader(version=3, id=session_id, timestamp=began, cwd="")
        session = cls(scope, msgspec.structs.replace(header, id=session_id))
        session.header_line = lines.header
        session.created_at = session.modified_at = began
        session.add(entries, lines.entries)
        session.leaf = lines.leaf
        return session

    def add(self, entries: Sequence[SessionEntry], lines: Sequence[str]) -> None:
        found = digest(entries)
        self.entries.extend(entries)
        self.lines.extend(lines)
        self.ids.update(entry.id for entry in entries)
        self.messages += found.messages
        self.first_message = self.first_message or found.first_message
        self.name = self.name if found.name is None else found.name
        self.modified_at = found.modified_at or self.modified_at

    def summary(self) -> SessionSummary:
        return SessionSummary(
            id=self.header.id,
            scope=self.scope,
            name=self.name,
            created_at=iso_time(self.created_at),
            modified_at=iso_time(self.modified_at),
            message_count=self.messages,
            first_message=self.first_message,
        )


class MemorySessionStore:
    """Implements ``SessionStore``."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._current: dict[str, str] = {}

    async def create(self, scope: str, header: SessionHeader, *, make_current: bool = True) -> None:
        if header.id in self._sessions:
            raise ValueError(f"session {header.id} is there already")
        self._sessions[header.id] = _Session(scope, header)
        if make_current:
            self._current[scope] = header.id

    async def append(
        self, session_id: str, entries: Sequence[SessionEntry], *, leaf: str | None, also: TransactionWork | None = None
    ) -> None:
        if also is not None:
            raise ValueError("a store in memory has no transaction that other work could join")
        session = self._sessions[session_id]
        seen = set(session.ids)
        for entry in entries:
            if entry.id in seen:
                raise ValueError(f"entry {entry.id} is there already")
            seen.add(entry.id)
        kept = [well_formed(entry) for entry in entries]
        session.add(kept, [encode(entry) for entry in kept])
        session.leaf = leaf

    async def set_leaf(self, session_id: str, leaf: str | None) -> None:
        session = self._sessions[session_id]
        if leaf is not None and leaf not in session.ids:
            raise KeyError(leaf)
        session.leaf = leaf

    async def load(self, session_id: str) -> tuple[SessionHeader, list[SessionEntry], str | None]:
        session = self._sessions[session_id]
        return session.header, list(session.entries), session.leaf

    async def current(self, scope: str) -> str | None:
        return self._current.get(scope)

    async def make_current(self, scope: str, session_id: str) -> None:
        if self._sessions[session_id].scope != scope:
            raise KeyError(session_id)
        self._current[scope] = session_id

    async def list(self, scope: str | None = None, *, limit: int = 100) -> list[SessionSummary]:
        found = [session.summary() for session in self._sessions.values() if scope is None or session.scope == scope]
        return sorted(found, key=lambda summary: (summary.modified_at, summary.id), reverse=True)[: max(limit, 0)]

    async def summary(self, session_id: str) -> SessionSummary | None:
        session = self._sessions.get(session_id)
        return None if session is None else session.summary()

    async def lines(self, session_id: str) -> SessionLines:
        session = self._sessions[session_id]
        return SessionLines(header=session.header_line, entries=list(session.lines), leaf=session.leaf)

    async def take_in(self, scope: str, session_id: str, lines: SessionLines) -> None:
        if session_id in self._sessions:
            raise ValueError(f"session {session_id} is there already")
        self._sessions[session_id] = _Session.of(scope, session_id, lines)

    async def replace(self, session_id: str, lines: SessionLines, *, was: SessionLines) -> None:
        session = self._sessions[session_id]
        if (len(session.entries), session.leaf) != (len(was.entries), was.leaf):
            raise ValueError(f"session {session_id} has changed meanwhile")
        self._sessions[session_id] = _Session.of(session.scope, session_id, lines)

    async def delete(self, session_id: str) -> bool:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        if self._current.get(session.scope) == session_id:
            del self._current[session.scope]
        return True
