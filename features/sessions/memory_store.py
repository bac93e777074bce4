"""Sessions that live as long as the process, for one-shot answers and for tests."""

from collections.abc import Sequence

from features.contracts.sessions import SessionEntry, SessionHeader, SessionSummary, TransactionWork
from features.sessions.codec import well_formed
from features.sessions.digest import digest
from features.sessions.timestamps import iso_text, iso_time

__all__ = ["MemorySessionStore"]


class _Session:
    def __init__(self, scope: str, header: SessionHeader) -> None:
        self.scope = scope
        self.header = well_formed(header)
        self.entries: list[SessionEntry] = []
        self.ids: set[str] = set()
        self.leaf: str | None = None
        self.name = ""
        self.messages = 0
        self.first_message = ""
        self.created_at = self.modified_at = iso_text(iso_time(header.timestamp))

    def add(self, entries: Sequence[SessionEntry]) -> None:
        found = digest(entries)
        self.entries.extend(entries)
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
        session.add([well_formed(entry) for entry in entries])
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

    async def delete(self, session_id: str) -> bool:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        if self._current.get(session.scope) == session_id:
            del self._current[session.scope]
        return True
