"""Files that tools may touch: in the workspace and the extra roots, wherever symlinks lead."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

import msgspec

from features.contracts.errors import ModelMustAct
from features.contracts.tools import ToolContext
from features.tools.background import Stop
from features.tools.path_spelling import spellings

__all__ = ["HOST_FOLDER", "Located", "WorkspaceFiles"]

HOST_FOLDER = ".pumice"
"""The host's own folder in a workspace: tools read it and never write it."""

_SYSTEM = (Path("/proc"), Path("/sys"), Path("/dev"))
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symlink that was just changed"),
)
_temporary_numbers = count(1)


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A path with every symlink resolved, found to be inside ``root``. ``written`` is what the model wrote."""

    root: Path
    parts: tuple[str, ...]
    written: str

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.parts)

    @property
    def is_hosts(self) -> bool:
        return any(part.casefold() == HOST_FOLDER for part in self.parts)


class WorkspaceFiles:
    """What one call may touch.

    A path is resolved and checked once, and then opened folder by folder from its root without following symlinks: one that is put in the
    way between the check and the opening makes the call fail instead of leading it outside.
    """

    def __init__(self, context: ToolContext) -> None:
        self._workspace = context.workspace
        self._roots = [Path(os.path.realpath(root)) for root in (context.workspace, *context.roots)]
        self._readable = [Path(os.path.realpath(root)) for root in context.readable]

    def locate(self, written: str, *, guess: bool = True) -> Located:
        """Find a path.

        Args:
            guess: take a file of nearly that name where there is none of that name; not for a file that may be a new one.

        Raises:
            ModelMustAct: it leads outside of the workspace and the roots, into the kernel's file systems, or is no path.
        """
        candidates = [self._resolve(spelling, written) for spelling in spellings(written, guess=guess)]
        existing = (path for path in candidates if os.path.exists(path))  # noqa: PTH110 - False for names that no disk takes, too
        return self._inside(next(existing, candidates[-1]), written)

    def locate_target(self, written: str, *, guess: bool) -> Located:
        """Find a path to write; ModelMustAct also for the host's own folder, and for what may only be read."""
        located = self.locate(written, guess=guess)
        if located.root in self._readable and located.root not in self._roots:
            raise ModelMustAct(f"{written} belongs to the whole host and can only be read here; copy it into the workspace to change it")
        if located.is_hosts:
            raise ModelMustAct(f"{written} is in {HOST_FOLDER}/, which only the host writes; choose another place")
        return located

    @contextlib.contextmanager
    def open_file(self, located: Located) -> Iterator[tuple[BinaryIO, int]]:
        """The file, open for reading, and its size in bytes. Only a regular file is opened: a pipe would block, a device never ends."""
        with _told(located, "read"):
            descriptor = self._open_regular(located)
            with os.fdopen(descriptor, "rb") as file:
                yield file, os.fstat(descriptor).st_size

    @contextlib.contextmanager
    def open_folder(self, located: Located) -> Iterator[int]:
        """A descriptor of the folder."""
        with _told(located, "read"), _folder(located.root, located.parts) as descriptor:
            yield descriptor

    def kind(self, located: Located) -> str:
        """``a file``, ``a directory``, ...; ``""`` for what is not there."""
        try:
            mode = located.path.lstat().st_mode
        except OSError:
            return ""
        return _kind(mode)

    def replace(self, located: Located, content: bytes, stop: Stop) -> None:
        """Write the whole file at once: others see the old content or the new, never a part. Its mode stays; folders are made."""
        with _told(located, "write"), _folder(located.root, located.parts[:-1], create=True) as folder:
            name = located.parts[-1] if located.parts else "."
            mode = _writable_mode(folder, name, located)
            temporary = f".pumice-{os.getpid()}-{next(_temporary_numbers)}.tmp"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    file.write(content)
                stop.check()
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise

    def _resolve(self, spelling: str, written: str) -> Path:
        try:
            os.fsencode(spelling)
            return Path(os.path.realpath(self._workspace / spelling))
        except ValueError:  # a NUL, or half of a character
            raise ModelMustAct(f"{written!r} cannot be a path") from None

    def _inside(self, path: Path, written: str) -> Located:
        if not written:
            raise ModelMustAct("the path is empty")
        if any(path.is_relative_to(system) for system in _SYSTEM):
            raise ModelMustAct(f"{written} is no ordinary file; {', '.join(map(str, _SYSTEM))} are closed to file tools")
        for root in (*self._roots, *self._readable):
            if path.is_relative_to(root):
                return Located(root=root, parts=path.relative_to(root).parts, written=written)
        reach = " and ".join(map(str, self._roots))
        raise ModelMustAct(f"{written} is outside of what file tools reach ({reach}); use a path in there")

    def _open_regular(self, located: Located) -> int:
        with _folder(located.root, located.parts[:-1]) as folder:
            name = located.parts[-1] if located.parts else "."
            _must_be_regular(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode, located)
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            _must_be_regular(os.fstat(descriptor).st_mode, located)
        except ModelMustAct:
            os.close(descriptor)
            raise
        return descriptor


@contextlib.contextmanager
def _folder(root: Path, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            deeper = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def _writable_mode(folder: int, name: str, located: Located) -> int | None:
    """Permission bits of the file that stands there now, None where there is none."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    _must_be_regular(mode, located)
    if not mode & 0o222:
        raise ModelMustAct(f"{located.written} is read-only")
    return mode & 0o777


def _must_be_regular(mode: int, located: Located) -> None:
    if stat.S_ISDIR(mode):
        raise ModelMustAct(f"{located.written} is a directory; use ls to see what is in it")
    if not stat.S_ISREG(mode):
        raise ModelMustAct(f"{located.written} is {_kind(mode)}; file tools work on ordinary files only")


def _kind(mode: int) -> str:
    return next((name for test, name in _KINDS if test(mode)), "a file")


@contextlib.contextmanager
def _told(located: Located, verb: str) -> Iterator[None]:
    """Turn the system's refusals into words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ModelMustAct(f"File not found: {located.written}") from None
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.ENOTDIR):
            raise ModelMustAct(f"cannot {verb} {located.written}: a part of its path is no directory") from None
        raise ModelMustAct(f"cannot {verb} {located.written}: {problem.strerror or problem}") from problem
