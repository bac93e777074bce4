"""Walking folders that others fill: bounded, loops seen, and in a place's own folder never through a link."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

__all__ = ["Entry", "Folder", "LinkFound", "TooMuch", "open_folder"]

_MOST_ENTRIES = 2000
_Signature = tuple[int, int, int, int, int]


class LinkFound(Exception):
    """A link where none is followed; the text is its name."""


class TooMuch(Exception):
    """More than anybody could look through; the text says of what."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a folder. ``signature`` changes with its content; device and inode come first in it."""

    name: str
    is_folder: bool
    is_file: bool
    is_link: bool
    size: int
    signature: _Signature

    @property
    def identity(self) -> tuple[int, int]:
        return self.signature[0], self.signature[1]


class Folder:
    """An open folder; what is in it is opened relative to it, so that nobody can put another in between."""

    def __init__(self, descriptor: int, path: Path, *, follow: bool) -> None:
        self.path = path
        self._descriptor = descriptor
        self._follow = follow

    def entries(self) -> list[Entry]:
        """By name.

        Raises:
            TooMuch: there are more than 2000.
        """
        with os.scandir(self._descriptor) as found:
            names = sorted(entry.name for entry in islice(found, _MOST_ENTRIES + 1))
        if len(names) > _MOST_ENTRIES:
            raise TooMuch(f"a folder in it has more than {_MOST_ENTRIES} entries")
        return [entry for name in names if (entry := self._entry(name)) is not None]

    def read(self, name: str, *, limit: int) -> bytes:
        """A file, at most ``limit`` bytes of it.

        Raises:
            OSError: it is not to be read.
        """
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | self._no_link, dir_fd=self._descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{name} is no ordinary file")
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit)

    @contextmanager
    def inner(self, name: str) -> Iterator["Folder"]:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | self._no_link, dir_fd=self._descriptor)
        try:
            yield Folder(descriptor, self.path / name, follow=self._follow)
        finally:
            os.close(descriptor)

    @property
    def _no_link(self) -> int:
        return 0 if self._follow else os.O_NOFOLLOW

    def _entry(self, name: str) -> Entry | None:
        try:
            found = os.stat(name, dir_fd=self._descriptor, follow_symlinks=self._follow)
        except OSError:  # it went away, or is a link to nothing
            return None
        return Entry(
            name=name,
            is_folder=stat.S_ISDIR(found.st_mode),
            is_file=stat.S_ISREG(found.st_mode),
            is_link=stat.S_ISLNK(found.st_mode),
            size=found.st_size,
            signature=(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
        )


@contextmanager
def open_folder(path: Path, *, follow: bool) -> Iterator[Folder | None]:
    """The folder, None where there is none.

    Raises:
        LinkFound: it is a link, and links are not followed.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    except OSError:
        if not follow and path.is_symlink():
            raise LinkFound(path.name) from None
        yield None
        return
    try:
        yield Folder(descriptor, path, follow=follow)
    finally:
        os.close(descriptor)
