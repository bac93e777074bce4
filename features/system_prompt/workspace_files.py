"""Reads the files of a workspace that go into the prompt, again only after they changed."""

import asyncio
import errno
import logging
import os
import stat
from collections import OrderedDict
from pathlib import Path

import msgspec

__all__ = ["FileHead", "WorkspaceFiles"]

log = logging.getLogger("pumice.system_prompt")

_KEPT_FILES = 256
_Signature = tuple[int, int, int, int]


class FileHead(msgspec.Struct, frozen=True):
    """The beginning of a file. ``size`` is the whole file's, in bytes; ``cut`` says that more than ``text`` is there."""

    text: str
    size: int
    cut: bool


_EMPTY = FileHead("", 0, False)


class WorkspaceFiles:
    """Remembers the beginnings of a bounded number of files; unchanged ones cost one stat each.

    Whoever works in the workspace may put anything there, so a link is never followed and only a regular file is read.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[_Signature | None, FileHead]] = OrderedDict()

    async def head(self, path: Path, *, limit: int) -> FileHead:
        """The first ``limit`` bytes; empty where there is no such file."""
        signature = _signature(path)
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            self._known.move_to_end(path)
            return known[1]
        head = _EMPTY if signature is None else await asyncio.to_thread(_read, path, limit)
        self._known[path] = (signature, head)
        self._known.move_to_end(path)
        if len(self._known) > _KEPT_FILES:
            self._known.popitem(last=False)
        return head


def _signature(path: Path) -> _Signature | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _read(path: Path, limit: int) -> FileHead:
    try:
        size, data = _bytes(path, limit)
    except OSError as error:
        log.warning("workspace file left out of the prompt", extra={"facts": {"path": str(path), "error": error.strerror}})
        return _EMPTY
    cut = size > len(data)
    # A cut may fall inside a character, which is left out then.
    text = data.decode("utf-8", "ignore" if cut else "replace")
    return FileHead(text.replace("\x00", "").strip(), size, cut)


def _bytes(path: Path, limit: int) -> tuple[int, bytes]:
    # Without O_NONBLOCK a pipe of that name would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        data = b""
        while len(data) < limit and (piece := os.read(descriptor, limit - len(data))):
            data += piece
        return found.st_size, data
    finally:
        os.close(descriptor)
