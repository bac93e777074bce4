"""A memory file on the disk: read whole, replaced whole."""

import errno
import os
import stat
from itertools import count
from pathlib import Path

import msgspec

from features.contracts.errors import UserMustAct

__all__ = ["ChangedMeanwhile", "Content", "read_content", "replace_content"]

_MAX_BYTES = 1024 * 1024
_numbers = count(1)
_Signature = tuple[int, int, int, int] | None


class ChangedMeanwhile(Exception):
    """Somebody else wrote the file between our reading and our writing."""


class Content(msgspec.Struct, frozen=True):
    """``signature`` tells whether the file is still the same; None where there is none."""

    text: str
    signature: _Signature


def read_content(path: Path) -> Content:
    """
    Raises:
        UserMustAct: it is no ordinary file, or too large to be worked on.
    """
    try:
        # Whoever works in the workspace may put anything there: a link is not followed, a pipe not waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Content("", None)
    except OSError as problem:
        raise _unusable(path, "a link" if problem.errno == errno.ELOOP else problem.strerror or str(problem)) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise _unusable(path, "no ordinary file")
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > _MAX_BYTES:
            raise _unusable(path, f"larger than {_MAX_BYTES // 1024} KB")
        return Content(file.read(_MAX_BYTES).decode("utf-8", "replace"), _signature(found))


def replace_content(path: Path, text: str, *, over: _Signature, folder: Path) -> None:
    """Write the file in one step, on the disk when this returns: others see the old content or the new, never a part.

    Args:
        over: the signature of what is replaced.
        folder: where the new file is made, on the same disk and written by nobody else.

    Raises:
        ChangedMeanwhile: the file is not the one with that signature any more.
    """
    temporary = folder / f".{path.name}.{os.getpid()}-{next(_numbers)}.tmp"
    try:
        mode = stat.S_IMODE(path.lstat().st_mode) if over is not None else 0o600
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(descriptor)
        if _signature_of(path) != over:
            raise ChangedMeanwhile
        temporary.replace(path)
    except FileNotFoundError:
        raise ChangedMeanwhile from None
    except OSError as problem:
        raise _unusable(path, problem.strerror or str(problem)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _signature_of(path: Path) -> _Signature:
    try:
        return _signature(path.lstat())
    except FileNotFoundError:
        return None


def _signature(found: os.stat_result) -> _Signature:
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _unusable(path: Path, why: str) -> UserMustAct:
    return UserMustAct(f"{path.name} cannot be used: it is {why}. Delete it or put an ordinary file in its place.")
