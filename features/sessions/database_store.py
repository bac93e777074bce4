"""Sessions in the host's database."""

import asyncio
import logging
from collections.abc import Sequence
from typing import cast

import msgspec

from features.contracts.chat import Address
from features.contracts.database import Database, Migrations, Row, Transaction
from features.contracts.places import readdress
from features.contracts.sessions import SessionEntry, SessionHeader, SessionLines, SessionSummary, TransactionWork
from features.sessions.codec import decode_entries, decode_header, encode
from features.sessions.digest import Digest, digest
from features.sessions.session_lines import began_at, entries_of
from features.sessions.timestamps import iso_text, iso_time
from features.sessions.tree import joined_over

__all__ = ["SESSION_MIGRATIONS", "DatabaseSessionStore"]

log = logging.getLogger("pumice.sessions")

# No index over modified_at: every append would have to move it, and a scope has few sessions to sort.
SESSION_MIGRATIONS = Migrations(
    slice="sessions",
    steps=(
        (
            """
            CREATE TABLE sessions (
                id TEXT PRIMARY KEY,
                scope TEXT NOT NULL,
                name TEXT NOT NULL,
                header TEXT NOT NULL,
                leaf TEXT,
                created_at TEXT NOT NULL,
                modified_at TEXT NOT NULL,
                entry_count INTEGER NOT NULL,
                message_count INTEGER NOT NULL,
                first_message TEXT NOT NULL
            )
            """,
            "CREATE INDEX sessions_by_scope ON sessions (scope)",
            """
            CREATE TABLE entries (
                session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
                seq INTEGER NOT NULL,
                id TEXT NOT NULL,
                parent_id TEXT,
                json TEXT NOT NULL,
                PRIMARY KEY (session_id, seq)
            )
            """,
            "CREATE UNIQUE INDEX entries_by_id ON entries (session_id, id)",
            """
            CREATE TABLE current_sessions (
                scope TEXT PRIMARY KEY,
                session_id TEXT NOT NULL UNIQUE REFERENCES sessions (id) ON DELETE CASCADE
            )
            """,
        ),
    ),
)

_CREATE = """
    INSERT INTO sessions (id, scope, name, header, leaf, created_at, modified_at, entry_count, message_count, first_message)
    VALUES (?, ?, '', ?, NULL, ?, ?, 0, 0, '') ON CONFLICT (id) DO NOTHING
"""
_APPEND = """
    UPDATE sessions SET
        leaf = ?,
        name = COALESCE(?, name),
        modified_at = COALESCE(?, modified_at),
        message_count = message_count + ?,
        first_message = CASE WHEN first_message = '' THEN ? ELSE first_message END,
        entry_count = entry_count + ?
    WHERE id = ? RETURNING entry_count
"""
_EMPTY = "UPDATE sessions SET header = ?, name = '', entry_count = 0, message_count = 0, first_message = '' WHERE id = ?"
_ADD_ENTRY = "INSERT INTO entries (session_id, seq, id, parent_id, json) VALUES (?, ?, ?, ?, ?) ON CONFLICT (session_id, id) DO NOTHING"
_MAKE_CURRENT = "INSERT INTO current_sessions VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET session_id = excluded.session_id"
_SUMMARIES = "SELECT id, scope, name, created_at, modified_at, message_count, first_message FROM sessions"

_DECODE_AT_ONCE = 500


class DatabaseSessionStore:
    """Implements ``SessionStore``; an append and its list columns are one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, scope: str, header: SessionHeader, *, make_current: bool = True) -> None:
        text, created_at = encode(header), iso_text(iso_time(header.timestamp))

        def work(transaction: Transaction) -> None:
            if not transaction.execute(_CREATE, (header.id, scope, text, created_at, created_at)):
                raise ValueError(f"session {header.id} is there already")
            if make_current:
                transaction.execute(_MAKE_CURRENT, (scope, header.id))

        await self._database.write(work)

    async def append(
        self, session_id: str, entries: Sequence[SessionEntry], *, leaf: str | None, also: TransactionWork | None = None
    ) -> None:
        rows = [(entry.id, entry.parent_id, encode(entry)) for entry in entries]
        found = digest(entries)

        def work(transaction: Transaction) -> None:
            _add(transaction, session_id, rows, found, leaf)
            if also is not None:
                also(transaction)

        await self._database.write(work)

    async def set_leaf(self, session_id: str, leaf: str | None) -> None:
        def work(transaction: Transaction) -> None:
            if leaf is not None and not transaction.fetch_one("SELECT 1 FROM entries WHERE session_id = ? AND id = ?", (session_id, leaf)):
                raise KeyError(leaf)
            if not transaction.execute("UPDATE sessions SET leaf = ? WHERE id = ?", (leaf, session_id)):
                raise KeyError(session_id)

        await self._database.write(work)

    async def load(self, session_id: str) -> tuple[SessionHeader, list[SessionEntry], str | None]:
        """Read a session; what cannot be read of it is left out and logged, and nothing is written."""

        session, rows = await self._database.read(lambda transaction: _stored(transaction, session_id))
        if session is None:
            raise KeyError(session_id)
        text, leaf, created_at = session
        header = decode_header(text)
        if header is None:
            log.warning("session header unreadable", extra={"facts": {"session": session_id}})
            header = SessionHeader(version=3, id=session_id, timestamp=created_at, cwd="")
        elif header.id != session_id:  # it came from elsewhere, where its own id was taken
            header = msgspec.structs.replace(header, id=session_id)
        entries = await _decoded(rows)
        if any(entry is None for entry in entries):
            places = await self._places(session_id)
            lost = {places[index][0]: places[index][1] for index, entry in enumerate(entries) if entry is None}
            log.warning("session entries unreadable", extra={"facts": {"session": session_id, "count": len(lost), "first": list(lost)[:9]}})
            readable, leaf = joined_over([entry for entry in entries if entry is not None], leaf, lost)
            return header, readable, leaf
        return header, cast("list[SessionEntry]", entries), leaf

    async def _places(self, session_id: str) -> list[Row]:
        """Id and parent of every entry, from the columns."""
        return await self._database.read(
            lambda transaction: transaction.fetch_all("SELECT id, parent_id FROM entries WHERE session_id = ? ORDER BY seq", (session_id,))
        )

    async def lines(self, session_id: str) -> SessionLines:
        session, rows = await self._database.read(lambda transaction: _stored(transaction, session_id))
        if session is None:
            raise KeyError(session_id)
        return SessionLines(header=session[0], entries=[text for (text,) in rows], leaf=session[1])

    async def take_in(self, scope: str, session_id: str, lines: SessionLines) -> None:
        taken = await asyncio.to_thread(_Taken, lines)

        def work(transaction: Transaction) -> None:
            if not transaction.execute(_CREATE, (session_id, scope, lines.header, taken.created_at, taken.created_at)):
                raise ValueError(f"session {session_id} is there already")
            _add(transaction, session_id, taken.rows, taken.found, lines.leaf)

        await self._database.write(work)

    async def replace(self, session_id: str, lines: SessionLines, *, was: SessionLines) -> None:
        taken = await asyncio.to_thread(_Taken, lines)

        def work(transaction: Transaction) -> None:
            present = transaction.fetch_one("SELECT entry_count, leaf FROM sessions WHERE id = ?", (session_id,))
            if present is None:
                raise KeyError(session_id)
            if tuple(present) != (len(was.entries), was.leaf):
                raise ValueError(f"session {session_id} has changed meanwhile")
            transaction.execute("DELETE FROM entries WHERE session_id = ?", (session_id,))
            transaction.execute(_EMPTY, (lines.header, session_id))
            _add(transaction, session_id, taken.rows, taken.found, lines.leaf)

        await self._database.write(work)

    async def current(self, scope: str) -> str | None:
        row = await self._database.read(
            lambda transaction: transaction.fetch_one("SELECT session_id FROM current_sessions WHERE scope = ?", (scope,))
        )
        return None if row is None else str(row[0])

    async def make_current(self, scope: str, session_id: str) -> None:
        def work(transaction: Transaction) -> None:
            if not transaction.fetch_one("SELECT 1 FROM sessions WHERE id = ? AND scope = ?", (session_id, scope)):
                raise KeyError(session_id)
            transaction.execute(_MAKE_CURRENT, (scope, session_id))

        await self._database.write(work)

    async def list(self, scope: str | None = None, *, limit: int = 100) -> list[SessionSummary]:
        where, parameters = ("", ()) if scope is None else (" WHERE scope = ?", (scope,))
        rows = await self._database.read(
            lambda transaction: transaction.fetch_all(
                f"{_SUMMARIES}{where} ORDER BY modified_at DESC, id DESC LIMIT ?", (*parameters, max(limit, 0))
            )
        )
        return [_summary(row) for row in rows]

    async def summary(self, session_id: str) -> SessionSummary | None:
        row = await self._database.read(lambda transaction: transaction.fetch_one(f"{_SUMMARIES} WHERE id = ?", (session_id,)))
        return None if row is None else _summary(row)

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        def work(transaction: Transaction) -> None:
            readdress(transaction, "sessions", "scope", old, new)
            before, after = str(old.place), str(new.place)
            transaction.execute(
                "DELETE FROM current_sessions WHERE scope IN (SELECT ? || substr(scope, ?) FROM current_sessions"
                " WHERE scope = ? OR substr(scope, 1, ?) = ?)",
                (after, len(before) + 1, before, len(before) + 1, f"{before}/"),
            )
            readdress(transaction, "current_sessions", "scope", old, new)

        return work

    def place_moved(self, old: Address, new: Address) -> None:
        """Nothing is kept in memory."""

    async def delete(self, session_id: str) -> bool:
        return bool(await self._database.write(lambda transaction: transaction.execute("DELETE FROM sessions WHERE id = ?", (session_id,))))


class _Taken:
    """Lines as rows; ValueError where they are no session."""

    def __init__(self, lines: SessionLines) -> None:
        entries = entries_of(lines)
        self.rows = [(entry.id, entry.parent_id, line) for entry, line in zip(entries, lines.entries, strict=True)]
        self.found = digest(entries)
        self.created_at = iso_text(began_at(lines.header, entries))


def _stored(transaction: Transaction, session_id: str) -> tuple[Row | None, list[Row]]:
    session = transaction.fetch_one("SELECT header, leaf, created_at FROM sessions WHERE id = ?", (session_id,))
    return session, transaction.fetch_all("SELECT json FROM entries WHERE session_id = ? ORDER BY seq", (session_id,))


def _add(transaction: Transaction, session_id: str, rows: Sequence[Row], found: Digest, leaf: str | None) -> None:
    columns = (leaf, found.name, found.modified_at, found.messages, found.first_message, len(rows), session_id)
    updated = transaction.fetch_one(_APPEND, columns)
    if updated is None:
        raise KeyError(session_id)
    for seq, row in enumerate(rows, updated[0] - len(rows)):
        if not transaction.execute(_ADD_ENTRY, (session_id, seq, *row)):
            raise ValueError(f"entry {row[0]} is there already")


async def _decoded(rows: Sequence[Row]) -> list[SessionEntry | None]:
    """The entries, None for what cannot be read. Other chats get their turn during a long session."""
    entries: list[SessionEntry | None] = []
    for start in range(0, len(rows), _DECODE_AT_ONCE):
        entries += decode_entries([text for (text,) in rows[start : start + _DECODE_AT_ONCE]])
        await asyncio.sleep(0)
    return entries


def _summary(row: Row) -> SessionSummary:
    session_id, scope, name, created_at, modified_at, message_count, first_message = row
    return SessionSummary(
        id=session_id,
        scope=scope,
        name=name,
        created_at=iso_time(created_at),
        modified_at=iso_time(modified_at),
        message_count=message_count,
        first_message=first_message,
    )
