"""Going through a folder's files, without ever leaving it."""

import os
import stat
from collections.abc import Iterator
from typing import Literal

import msgspec

from features.contracts.errors import ModelMustAct
from features.tools.background import Stop
from features.tools.files import HOST_FOLDER, Located, WorkspaceFiles
from features.tools.ignore_rules import IgnoreRules

__all__ = ["Found", "open_found", "shown_name", "walk"]

_MAX_DEPTH = 64
_MAX_IGNORE_BYTES = 262_144
_IGNORE_FILE = ".gitignore"
_LEFT_OUT = {".git", HOST_FOLDER}
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a folder. ``path`` is POSIX, relative to where the walk began, in a form that can be printed.

    ``folder`` is a descriptor that ``open_found`` needs; it is valid until the walk goes on.
    """

    path: str
    name: str
    folder: int
    kind: Literal["file", "folder", "other"]


def walk(files: WorkspaceFiles, start: Located, stop: Stop) -> Iterator[Found]:
    """Everything below ``start`` in the order of names, hidden files too; ``.git``, the host's folder and what is ignored left out.

    Symlinks are reported and never followed. The walk ends early when ``stop`` has expired.
    """
    rules = IgnoreRules()
    for depth in range(len(start.parts)):
        rules = rules.within(_folder_path(start.parts[:depth]), _ignore_file_of(files, start, depth))
    with files.open_folder(start) as descriptor:
        yield from _Walk(_folder_path(start.parts), stop).through(descriptor, "", rules, 0)


def open_found(found: Found) -> int | None:
    """A descriptor of a regular file, None when it cannot be opened as one (any more)."""
    return _open_regular(found.name, found.folder)


def shown_name(name: str) -> str:
    """A file name as text: bytes that are no UTF-8 replaced."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "replace")


class _Walk:
    """``prefix`` is the start's own path from its root, which ignore rules are relative to."""

    def __init__(self, prefix: str, stop: Stop) -> None:
        self._prefix = prefix
        self._stop = stop

    def through(self, folder: int, path: str, rules: IgnoreRules, depth: int) -> Iterator[Found]:
        rules = rules.within(self._prefix + path, _text_of(_open_regular(_IGNORE_FILE, folder)))
        for name, kind in _entries(folder):
            self._stop.check()
            if self._stop.expired:
                return
            own = path + shown_name(name)
            if name in _LEFT_OUT or rules.leave_out(self._prefix + own + ("/" if kind == "folder" else "")):
                continue
            yield Found(path=own, name=name, folder=folder, kind=kind)
            if kind == "folder" and depth < _MAX_DEPTH:
                yield from self._deeper(folder, name, own + "/", rules, depth + 1)

    def _deeper(self, folder: int, name: str, path: str, rules: IgnoreRules, depth: int) -> Iterator[Found]:
        try:
            descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
        except OSError:
            return  # not ours to read, gone, or a symlink by now
        try:
            yield from self.through(descriptor, path, rules, depth)
        finally:
            os.close(descriptor)


def _entries(folder: int) -> list[tuple[str, Literal["file", "folder", "other"]]]:
    with os.scandir(folder) as entries:
        return sorted((entry.name, _kind(entry)) for entry in entries)


def _kind(entry: os.DirEntry[str]) -> Literal["file", "folder", "other"]:
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _folder_path(parts: tuple[str, ...]) -> str:
    return "".join(f"{shown_name(part)}/" for part in parts)


def _ignore_file_of(files: WorkspaceFiles, start: Located, depth: int) -> str:
    located = Located(root=start.root, parts=(*start.parts[:depth], _IGNORE_FILE), written=_IGNORE_FILE)
    try:
        with files.open_file(located) as (file, _):
            return file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except ModelMustAct:
        return ""


def _open_regular(name: str, folder: int) -> int | None:
    try:
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor


def _text_of(descriptor: int | None) -> str:
    if descriptor is None:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace")
