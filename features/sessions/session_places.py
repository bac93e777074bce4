"""Where session files lie and what they are called."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote

__all__ = ["FilePlaces", "FolderPlaces", "Place", "SessionPlaces"]

_LONGEST_NAME = 120
_LONGEST_ID = 200
_SCOPE, _CURRENT = ".scope", ".current"
_TAIL_CHARS = 8


class Place(NamedTuple):
    scope: str
    session_id: str
    path: Path


class SessionPlaces(Protocol):
    """Contract.

    - ``find`` is where a session lies, None for one that is not there.
    - ``new`` is where a session that is about to be made will lie; ``made`` says that it has been.
    - ``all`` are the sessions of a scope, or of every scope.
    - ``current`` is the session that a scope talks in; ``set_current`` is on the disk when it returns, where there is a place for it.
    """

    def find(self, session_id: str) -> Place | None: ...

    def new(self, scope: str, session_id: str) -> Place: ...

    def made(self, place: Place) -> None: ...

    def deleted(self, place: Place) -> None: ...

    def all(self, scope: str | None) -> Sequence[Place]: ...

    def current(self, scope: str) -> str | None: ...

    def set_current(self, scope: str, session_id: str) -> None: ...


class FolderPlaces:
    """A folder with one folder for each scope and a file ``ID.jsonl`` for each session in it; implements ``SessionPlaces``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, session_id: str) -> Place | None:
        for folder in self._folders():
            if (path := folder / _file_name(session_id)).is_file():
                return Place(_read_small(folder / _SCOPE), session_id, path)
        return None

    def new(self, scope: str, session_id: str) -> Place:
        return Place(scope, session_id, self._of(scope) / _file_name(session_id))

    def made(self, place: Place) -> None:
        _write_small(place.path.parent / _SCOPE, place.scope)

    def deleted(self, place: Place) -> None:
        if self.current(place.scope) == place.session_id:
            (place.path.parent / _CURRENT).unlink(missing_ok=True)

    def all(self, scope: str | None) -> Sequence[Place]:
        return [
            Place(owner, unquote(path.stem), path)
            for folder in self._folders()
            if scope in (None, owner := _read_small(folder / _SCOPE))
            for path in sorted(folder.glob("[!.]*.jsonl"))
        ]

    def current(self, scope: str) -> str | None:
        try:
            session_id = _read_small(self._of(scope) / _CURRENT)
        except FileNotFoundError:
            return None
        return session_id if self.new(scope, session_id).path.is_file() else None

    def set_current(self, scope: str, session_id: str) -> None:
        _write_small(self._of(scope) / _CURRENT, session_id)

    def _folders(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [folder for folder in sorted(self._folder.iterdir()) if (folder / _SCOPE).is_file()]

    def _of(self, scope: str) -> Path:
        name = _safe(scope)
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}%{hashlib.sha256(scope.encode()).hexdigest()[:16]}"
        return self._folder / name


class FilePlaces:
    """One file of any name, and beside it those that are made while it is open; implements ``SessionPlaces``. It has one scope."""

    def __init__(self, path: Path, scope: str, session_id: str) -> None:
        self._path = path
        self._scope = scope
        self._current: str | None = session_id
        self._known = {session_id: Place(scope, session_id, path)}

    def find(self, session_id: str) -> Place | None:
        return self._known.get(session_id)

    def new(self, scope: str, session_id: str) -> Place:
        tail = _safe(session_id)[-_TAIL_CHARS:]
        return Place(scope, session_id, self._path.with_name(f"{self._path.stem}-{tail}{self._path.suffix or '.jsonl'}"))

    def made(self, place: Place) -> None:
        self._known[place.session_id] = place

    def deleted(self, place: Place) -> None:
        self._known.pop(place.session_id, None)
        if self._current == place.session_id:
            self._current = None

    def all(self, scope: str | None) -> Sequence[Place]:
        return [place for place in self._known.values() if scope in (None, place.scope)]

    def current(self, scope: str) -> str | None:
        return self._current if scope == self._scope else None

    def set_current(self, scope: str, session_id: str) -> None:
        if scope == self._scope:
            self._current = session_id


def _safe(text: str) -> str:
    """A name that no two texts share, and with which none gets out of its folder."""
    return quote(text, safe=" ").replace(".", "%2E") or "%"


def _file_name(session_id: str) -> str:
    """
    Raises:
        ValueError: the id is too long for a file's name.
    """
    name = _safe(session_id)
    if len(name) > _LONGEST_ID:
        raise ValueError(f"the id of a session has at most {_LONGEST_ID} characters as a file's name; this one has {len(name)}")
    return f"{name}.jsonl"


def _read_small(path: Path) -> str:
    return path.read_text()


def _write_small(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text:
        return
    draft = path.with_name(f"{path.name}.new")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
