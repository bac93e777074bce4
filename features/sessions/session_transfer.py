"""Sessions in and out of a store, and their repair."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from features.contracts.clock import Clock
from features.contracts.errors import RetryLater
from features.contracts.session_transfer import CheckedSession, ExportedSession, ExportFormat, ImportedSession
from features.contracts.sessions import CompactionEntry, SessionEntry, SessionInfoEntry, SessionLines, SessionStore
from features.sessions.codec import decode_entry, decode_header, encode
from features.sessions.html_page import html_page
from features.sessions.json_line import changed, json_text
from features.sessions.leaf_marks import leaf_mark, leaf_of
from features.sessions.markdown_page import markdown_page
from features.sessions.remarks import many, remarks
from features.sessions.session_text import read_session_text
from features.sessions.timestamps import iso_text
from features.sessions.tree import EntryTree, parents_in_circles

__all__ = ["SessionTransfer"]

_SUFFIXES: dict[ExportFormat, str] = {"jsonl": ".jsonl", "html": ".html", "md": ".md"}
_SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{3,79}")
_NAME_CHARS = re.compile(r"[^A-Za-z0-9 _-]+")
_LONGEST_NAME = 60


class SessionTransfer:
    """
    Args:
        originals: the folder that keeps what was there before a repair.
    """

    def __init__(self, store: SessionStore, *, originals: Path, clock: Clock, ids: Callable[[], str]) -> None:
        self._store = store
        self._originals = originals
        self._clock = clock
        self._ids = ids

    async def import_file(self, data: bytes, scope: str) -> ImportedSession:
        """Take a session file into the store, as a session of ``scope`` that is not its current one.

        It keeps its id unless that is taken. Lines of the present format are kept as they are.

        Raises:
            UserMustAct: it holds no session.
        """
        text = await asyncio.to_thread(read_session_text, data, ids=self._ids, timestamp=iso_text(self._clock.now()))
        warnings = list(text.warnings)
        lines = SessionLines(header=text.header_line, entries=text.lines, leaf=leaf_of(text.entries))
        session_id = text.header.id
        if not _SANE_ID.fullmatch(session_id) or await self._store.summary(session_id) is not None:
            session_id = self._ids()
            warnings.append(f"The session's own id {text.header.id!r} is taken or cannot serve here; it is {session_id} now.")
        await self._store.take_in(scope, session_id, lines)
        return ImportedSession(id=session_id, entries=len(text.entries), warnings=warnings)

    async def export(self, session_id: str, form: ExportFormat = "jsonl") -> ExportedSession:
        """A session as a file: all of it, or for reading (``md`` the present branch, ``html`` the tree).

        Raises:
            KeyError: it is not there.
        """
        lines = await self._store.lines(session_id)
        if form == "jsonl":
            text, name = await asyncio.to_thread(_jsonl, lines)
        else:
            header, entries, leaf = await self._store.load(session_id)
            tree = EntryTree(entries)
            branch = tree.branch(leaf)
            name = next((entry.name for entry in reversed(entries) if isinstance(entry, SessionInfoEntry)), "")
            title = name or "A conversation"
            if form == "md":
                text = await asyncio.to_thread(markdown_page, title, header, branch, tree.labels)
            else:
                ids = [entry.id for entry in branch]
                text = await asyncio.to_thread(html_page, title, header, tree.roots(), ids, tree.labels)
        safe = "-".join(_NAME_CHARS.sub("", name)[:_LONGEST_NAME].split())
        return ExportedSession(name=f"{safe or 'session'}-{_NAME_CHARS.sub('', session_id)[-8:]}{_SUFFIXES[form]}", data=text.encode())

    async def check(self, session_id: str, *, repair: bool = True) -> CheckedSession:
        """Look for what is damaged, and put it in order; the session as it was is kept as a file in ``originals`` then.

        Raises:
            KeyError: it is not there.
            RetryLater: something was appended meanwhile.
        """
        was = await self._store.lines(session_id)
        header, entries, leaf = await self._store.load(session_id)
        sound, problems = _sound_lines(was, entries, leaf, encode(header))
        odd = remarks(entries)
        if not problems or not repair:
            return CheckedSession(id=session_id, problems=problems, remarks=odd)
        original = await asyncio.to_thread(self._keep, session_id, was)
        try:
            await self._store.replace(session_id, sound, was=was)
        except ValueError:
            original.unlink()
            raise RetryLater(f"Session {session_id} was written to meanwhile. Check it again.") from None
        return CheckedSession(id=session_id, problems=problems, remarks=odd, original=str(original))

    def _keep(self, session_id: str, lines: SessionLines) -> Path:
        self._originals.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = iso_text(self._clock.now()).replace(":", "").replace(".", "")
        path = self._originals / f"{_NAME_CHARS.sub('_', session_id)}-{stamp}.jsonl"
        with path.open("x", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(f"{line}\n" for line in (lines.header, *lines.entries))
        return path


def _jsonl(lines: SessionLines) -> tuple[str, str]:
    """The text of the file and the session's name."""
    entries = [entry for line in lines.entries if (entry := decode_entry(line)) is not None]
    written = [lines.header, *lines.entries]
    if leaf_of(entries) != lines.leaf:
        last = entries[-1].timestamp if entries else ""
        written.append(encode(leaf_mark(lines.leaf, {entry.id for entry in entries}, last)))
    name = next((entry.name for entry in reversed(entries) if isinstance(entry, SessionInfoEntry)), "")
    return "".join(f"{line}\n" for line in written), name


def _sound_lines(was: SessionLines, entries: Sequence[SessionEntry], leaf: str | None, header_line: str) -> tuple[SessionLines, list[str]]:
    """The lines that say what a store could load, and what is wrong with those that are there."""
    problems: list[str] = []
    written = {entry.id: (entry, line) for line in was.entries if (entry := decode_entry(line)) is not None}
    if decode_header(was.header) is None:
        problems.append("the header cannot be read")
    else:
        header_line = was.header
    if lost := len(was.entries) - len(written):
        problems.append(f"{many(lost, 'entry', 'entries')} cannot be read")
    circles = set(parents_in_circles(entries))
    if circles:
        problems.append(f"{many(len(circles), 'circle', 'circles')} of entries that follow each other")
    kept: list[str] = []
    for entry in entries:
        known, line = written.get(entry.id, (entry, ""))
        parent = None if entry.id in circles else entry.parent_id
        changes: dict[str, str | object] = {}
        if known.parent_id != parent:
            changes["parentId"] = json_text(parent)
        kept_from = entry.first_kept_entry_id if isinstance(entry, CompactionEntry) else None
        if isinstance(known, CompactionEntry) and known.first_kept_entry_id != kept_from:
            changes["firstKeptEntryId"] = json_text(kept_from)
        line = line or encode(entry)
        kept.append(changed(line, changes) if changes else line)
    ids = {entry.id for entry in entries}
    if leaf is not None and leaf not in ids:
        problems.append("the place where it goes on is not there")
        leaf = entries[-1].id if entries else None
    return SessionLines(header=header_line, entries=kept, leaf=leaf), problems
