"""The entry type of the slice."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from weakref import WeakValueDictionary

import msgspec

from features.contracts.chat import Address
from features.contracts.errors import UserMustAct
from features.contracts.memory import MEMORY_BYTES, MEMORY_FILE, PlaceLog
from features.contracts.tools import Tool
from features.memory.history_tool import HistoryTool
from features.memory.memory_tool import MemoryTool
from features.memory.notes import Note, find_notes, note_key, with_note, without
from features.memory.notes_file import ChangedMeanwhile, read_content, replace_content

__all__ = ["Memory", "NotesView", "Scope"]

Scope = Literal["chat", "everywhere"]
_LONGEST_NOTE = 1000
_TRIES = 3


class NotesView(msgspec.Struct, frozen=True, kw_only=True):
    """What a memory file says; its notes in order, each with the key that ``forget`` takes. ``size`` is in bytes."""

    text: str
    notes: tuple[tuple[str, str], ...]
    size: int


class Memory:
    """Serves every place of a host. Changes of one file take turns here; a change by anybody else is seen and worked upon.

    Args:
        folder: the workspace of a place, made if need be; it holds a ``.pumice`` folder that the host alone writes.
        host_file: the memory of all of the owners' places, None where there is none.
        is_owners: whether a place is an owner's alone, so that what is kept everywhere may be seen there.
    """

    def __init__(
        self, log: PlaceLog, *, folder: Callable[[Address], Path], host_file: Path | None, is_owners: Callable[[Address], bool]
    ) -> None:
        self._log = log
        self._folder = folder
        self._host_file = host_file
        self._is_owners = is_owners
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def tools(self, place: Address) -> list[Tool]:
        """The tools of a session of the place."""
        return [MemoryTool(self, place, everywhere=self.host_file(place) is not None), HistoryTool(self._log, place)]

    def host_file(self, place: Address) -> Path | None:
        """The host-wide memory, for a place where it may be seen."""
        return self._host_file if self._host_file is not None and self._is_owners(place) else None

    async def view(self, place: Address, scope: Scope) -> NotesView:
        """
        Raises:
            UserMustAct: there is no such memory here, or the file is not to be used.
        """
        path, _ = await self._where(place, scope)
        content = await asyncio.to_thread(read_content, path)
        return NotesView(
            text=content.text.strip(),
            notes=tuple((note_key(note.text), note.text) for note in find_notes(content.text)),
            size=len(content.text.encode("utf-8", "replace")),
        )

    async def add(self, place: Address, scope: Scope, text: str) -> bool:
        """Note something at the end; False where that very note is there already.

        Raises:
            UserMustAct: it is empty, too long, or there is no room left.
        """
        note = _line(text)

        def change(content: str) -> str:
            known = any(other.text.casefold() == note.casefold() for other in find_notes(content))
            return content if known else with_note(content, note)

        return await self._change(place, scope, change)

    async def replace(self, place: Address, scope: Scope, old: str, text: str) -> str:
        """Put another note in the place of the one that says ``old`` or has it as a part; gives what was there.

        Raises:
            UserMustAct: none or several do; or as ``add``.
        """
        note = _line(text)
        found: list[str] = []

        def change(content: str) -> str:
            old_note = _the_one(content, old)
            found[:] = [old_note.text]
            return with_note(content, note, instead=old_note)

        await self._change(place, scope, change)
        return found[0]

    async def remove(self, place: Address, scope: Scope, old: str) -> str:
        """Take out the note that says ``old`` or has it as a part; gives what it said.

        Raises:
            UserMustAct: none or several do.
        """
        found: list[str] = []

        def change(content: str) -> str:
            note = _the_one(content, old)
            found[:] = [note.text]
            return without(content, note)

        await self._change(place, scope, change)
        return found[0]

    async def forget(self, place: Address, scope: Scope, key: str) -> str:
        """Take out the note with this key; gives what it said.

        Raises:
            UserMustAct: it is not there any more.
        """
        found: list[str] = []

        def change(content: str) -> str:
            note = next((note for note in find_notes(content) if note_key(note.text) == key), None)
            if note is None:
                raise UserMustAct("That note is not there any more, or it has changed. `/memory` shows what is.")
            found[:] = [note.text]
            return without(content, note)

        await self._change(place, scope, change)
        return found[0]

    async def clear(self, place: Address, scope: Scope) -> int:
        """Take out all notes, what stands around them stays; gives how many there were."""
        count = 0

        def change(content: str) -> str:
            nonlocal count
            notes = find_notes(content)
            count = len(notes)
            for note in reversed(notes):
                content = without(content, note)
            return content

        await self._change(place, scope, change)
        return count

    async def _change(self, place: Address, scope: Scope, change: Callable[[str], str]) -> bool:
        """Read, change, write; again from the beginning where somebody else wrote meanwhile. Gives whether anything changed."""
        path, folder = await self._where(place, scope)
        async with self._lock(path):
            for _ in range(_TRIES):
                # Shielded: whoever is cancelled here leaves a whole change, and the next one waits for it.
                done = await asyncio.shield(asyncio.to_thread(_rewrite, path, folder, change))
                if done is not None:
                    return done
        raise UserMustAct(f"{MEMORY_FILE} is being changed by somebody else; try again in a moment.")

    async def _where(self, place: Address, scope: Scope) -> tuple[Path, Path]:
        """The file, and the folder in which a new one is made."""
        if scope == "everywhere":
            path = self.host_file(place)
            if path is None:
                raise UserMustAct("There is no memory for all chats here. An operator switches it on with memory.host_wide, for owners.")
            return path, path.parent
        folder = await asyncio.to_thread(self._folder, place)
        return folder / MEMORY_FILE, folder / ".pumice"

    def _lock(self, path: Path) -> asyncio.Lock:
        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock


def _rewrite(path: Path, folder: Path, change: Callable[[str], str]) -> bool | None:
    """Whether the file was changed; None where it has to be tried again."""
    content = read_content(path)
    text = change(content.text)
    if text == content.text:
        return False
    size, before = (len(each.encode("utf-8", "replace")) for each in (text, content.text))
    if size > MEMORY_BYTES and size > before:
        raise UserMustAct(
            f"{path.name} would have {size} bytes, and at most {MEMORY_BYTES} are read. First remove what no longer holds or shorten notes."
        )
    try:
        replace_content(path, text, over=content.signature, folder=folder)
    except ChangedMeanwhile:
        return None
    return True


def _line(text: str) -> str:
    line = " ".join(text.replace("\0", "").split())
    if not line:
        raise UserMustAct("There is nothing to note.")
    if len(line) > _LONGEST_NOTE:
        raise UserMustAct(
            f"A note has at most {_LONGEST_NOTE} characters and this one has {len(line)}. "
            "Shorten it, or write it into a file and note the file's name."
        )
    return line


def _the_one(content: str, old: str) -> Note:
    wanted = " ".join(old.split()).casefold()
    notes = find_notes(content)
    exact = [note for note in notes if note.text.casefold() == wanted]
    found = exact or [note for note in notes if wanted and wanted in note.text.casefold()]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserMustAct(f"No note says {old[:200]!r}. Read the memory first, then name a note by its words.")
    shown = "; ".join(repr(note.text[:100]) for note in found[:5])
    raise UserMustAct(f"{len(found)} notes say {old[:200]!r}: {shown}. Name one by more of its words.")
