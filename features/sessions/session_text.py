"""Reading a session file: any version of the format, damaged or not."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from features.contracts.errors import UserMustAct
from features.contracts.sessions import SessionEntry, SessionHeader, UnknownEntry
from features.sessions.codec import decode_entry, decode_header
from features.sessions.entry_ids import fresh_entry_id
from features.sessions.json_line import DROP, changed, json_text
from features.sessions.migrations import migrated_line
from features.sessions.remarks import many, remarks
from features.sessions.tree import parents_in_circles

__all__ = ["FORMAT_VERSION", "SessionText", "read_session_text"]

FORMAT_VERSION = 3
_NAMED_LINES = 5


class SessionText(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a session file.

    ``lines`` are of the present format, one for each of ``entries``. ``warnings`` say for a person what was damaged or left out.
    ``faithful`` says that they are the file's own lines, and all of them.
    """

    header: SessionHeader
    header_line: str
    lines: list[str]
    entries: list[SessionEntry]
    warnings: list[str]
    faithful: bool


def read_session_text(data: bytes, *, ids: Callable[[], str], timestamp: str) -> SessionText:
    """Make the best of a session file.

    Args:
        timestamp: stands in where the file names no time of its beginning.

    Raises:
        UserMustAct: it holds nothing of a session.
    """
    return _Reading(ids).read(data, timestamp)


class _Reading:
    def __init__(self, ids: Callable[[], str]) -> None:
        self._ids = ids
        self._lines: list[str] = []
        self._entries: list[SessionEntry] = []
        self._by_id: dict[str, int] = {}
        self._renamed: dict[str, str] = {}
        self._after_damage: set[int] = set()
        self._bad: list[int] = []
        self._duplicates = self._nameless = 0
        self._warnings: list[str] = []
        self._faithful = True

    def read(self, data: bytes, timestamp: str) -> SessionText:
        texts = self._texts(data)
        number, header_line, header = self._header(texts, timestamp)
        version = _version(header_line)
        for index, text in enumerate(texts[number:], number + 1):
            if text.strip():
                self._take(text, index, version)
            elif self._lines:  # an empty line stays behind the one before, so that the same bytes come out again
                self._lines[-1] += f"\n{text}"
            else:
                header_line += f"\n{text}"
        if number == 0 and all(isinstance(entry, UnknownEntry) for entry in self._entries):
            raise UserMustAct("this is no session file: it holds neither the header of a session nor an entry of one.")
        if version < FORMAT_VERSION:
            self._faithful = False
            self._warnings.insert(0, f"The file is in version {version} of the format; it was brought to version {FORMAT_VERSION}.")
            header_line = changed(header_line, {"version": str(FORMAT_VERSION)})
            header = msgspec.structs.replace(header, version=FORMAT_VERSION)
        elif version > FORMAT_VERSION:
            self._warnings.insert(0, f"The file is in version {version} of the format, newer than what is known here ({FORMAT_VERSION}).")
        self._join()
        self._report()
        return SessionText(
            header=header,
            header_line=header_line,
            lines=self._lines,
            entries=self._entries,
            warnings=self._warnings,
            faithful=self._faithful,
        )

    def _texts(self, data: bytes) -> list[str]:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            self._warnings.append("Some bytes are no UTF-8 text; they were replaced by U+FFFD.")
            self._faithful = False
            text = data.decode(errors="replace")
        if text.startswith("\ufeff"):
            text = text[1:]
            self._faithful = False
        return text.removesuffix("\n").split("\n")

    def _header(self, texts: list[str], timestamp: str) -> tuple[int, str, SessionHeader]:
        """How many lines the header takes, its line and what it says; made up where the file has none."""
        first = next((index for index, text in enumerate(texts) if text.strip()), None)
        if first is None:
            raise UserMustAct("the file is empty.")
        line = texts[first]
        fields = _object(line)
        if fields is not None and fields.get("type") == "session":
            header = decode_header(line if "version" in fields else changed(line, {"version": "1"}))
            if header is None:
                header = _patched(fields, self._ids(), timestamp)
                self._warnings.append("The header was incomplete; what was missing was filled in.")
                self._faithful = False
                version = fields.get("version", 1)
                line = changed(line, {key: json_text(value) for key, value in msgspec.to_builtins(header).items()})
                line = changed(line, {"version": json_text(version) if isinstance(version, int) else DROP})
            return first + 1, line, header
        self._warnings.append("The header of the session could not be read; a new one was made.")
        self._faithful = False
        header = SessionHeader(version=FORMAT_VERSION, id=self._ids(), timestamp=timestamp, cwd="")
        return 0, json_text(msgspec.to_builtins(header)), header

    def _take(self, text: str, number: int, version: int) -> None:
        try:
            line = text if version >= FORMAT_VERSION else self._migrated(text, number, version)
            entry = decode_entry(line)
            if entry is None or isinstance(entry, UnknownEntry):
                line, entry = self._completed(line, entry)
        except (ValueError, RecursionError):
            entry = None
        if entry is None:
            self._bad.append(number)
            return
        line, entry = self._once(line, entry)
        if entry is not None:
            if self._bad and (not self._entries or self._bad[-1] == number - 1):
                self._after_damage.add(len(self._entries))
            self._by_id[entry.id] = len(self._entries)
            self._lines.append(line)
            self._entries.append(entry)

    def _migrated(self, text: str, number: int, version: int) -> str:
        place = {"id": json_text(self._short_id()), "parentId": json_text(self._last_id)}
        # Version 1 counts the lines of the file, the header being 0.
        ids_by_line = {index: entry.id for index, entry in enumerate(self._entries, 1)} if "firstKeptEntryIndex" in text else {}
        return migrated_line(text, version, place, ids_by_line)

    def _completed(self, line: str, entry: SessionEntry | None) -> tuple[str, SessionEntry | None]:
        """A line without an id or parent of its own gets them; one of an unknown kind stays as it is."""
        fields = _object(line)
        if fields is None or not isinstance(fields.get("type"), str) or fields["type"] == "session":
            return line, None
        missing: dict[str, str | object] = {}
        if not isinstance(fields.get("id"), str) or not fields["id"]:
            missing["id"] = json_text(self._short_id())
            missing["parentId"] = json_text(self._last_id)
        elif not isinstance(fields.get("parentId", 0), str | None):
            missing["parentId"] = json_text(self._last_id if "parentId" not in fields else None)
        if not missing:
            return line, entry
        self._nameless += 1
        line = changed(line, missing)
        return line, decode_entry(line)

    def _once(self, line: str, entry: SessionEntry) -> tuple[str, SessionEntry | None]:
        """An entry whose id is taken is dropped where it says the same again, and renamed where it says something else."""
        if entry.parent_id in self._renamed:
            line, entry = self._changed(line, parentId=self._renamed[entry.parent_id])
        taken = self._by_id.get(entry.id)
        if taken is None:
            return line, entry
        self._duplicates += 1
        if self._lines[taken] == line:
            return line, None
        fresh = self._short_id()
        self._renamed[entry.id] = fresh  # pi takes the last of that id for what follows too
        return self._changed(line, id=fresh)

    def _changed(self, line: str, **fields: str | None) -> tuple[str, SessionEntry]:
        line = changed(line, {key: json_text(value) for key, value in fields.items()})
        entry = decode_entry(line)
        assert entry is not None
        return line, entry

    def _join(self) -> None:
        """Join what a damaged line tore apart, and cut circles; an entry that came without its parent stays as it is."""
        joined: dict[str, str | None] = {}
        count = 0
        for index, entry in enumerate(self._entries):
            if entry.parent_id is None or entry.parent_id in self._by_id:
                continue
            if index in self._after_damage:
                # Behind a line that cannot be read stands what followed it: what was said before belongs to the conversation.
                joined.setdefault(entry.parent_id, self._entries[index - 1].id if index else None)
            if entry.parent_id in joined:
                self._move(index, joined[entry.parent_id])
                count += 1
        circles = parents_in_circles(self._entries)
        for entry_id in circles:
            self._move(self._by_id[entry_id], None)
        if count := count + len(circles):
            self._warnings.append(f"{many(count, 'entry', 'entries')} had lost what came before; they were joined to what is left of it.")
            self._faithful = False

    def _move(self, index: int, parent: str | None) -> None:
        self._lines[index], self._entries[index] = self._changed(self._lines[index], parentId=parent)

    def _report(self) -> None:
        if self._bad:
            named = ", ".join(map(str, self._bad[:_NAMED_LINES])) + (", ..." if len(self._bad) > _NAMED_LINES else "")
            self._warnings.append(f"{many(len(self._bad), 'line', 'lines')} could not be read, left out: {named}.")
        if self._nameless:
            self._warnings.append(f"{many(self._nameless, 'entry', 'entries')} had no id or parent and got one.")
        if self._duplicates:
            self._warnings.append(f"{many(self._duplicates, 'entry', 'entries')} had an id that was taken; repeated ones were dropped.")
        self._faithful = self._faithful and not self._nameless and not self._duplicates and not self._bad
        self._warnings += remarks(self._entries)

    @property
    def _last_id(self) -> str | None:
        return self._entries[-1].id if self._entries else None

    def _short_id(self) -> str:
        return fresh_entry_id(self._ids, self._by_id.__contains__)


def _object(line: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _version(header_line: str) -> int:
    version = (_object(header_line) or {}).get("version", 1)
    return version if isinstance(version, int) else 1


def _patched(fields: dict[str, Any], fresh_id: str, timestamp: str) -> SessionHeader:
    """A header of version 1, or a damaged one, as far as it goes."""

    def text(key: str, other: str) -> str:
        value = fields.get(key)
        return value if isinstance(value, str) and value else other

    parent = fields.get("parentSession")
    return SessionHeader(
        version=FORMAT_VERSION,
        id=text("id", fresh_id),
        timestamp=text("timestamp", timestamp),
        cwd=text("cwd", ""),
        parent_session=parent if isinstance(parent, str) else None,
    )
