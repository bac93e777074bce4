"""One host per data directory."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from features.contracts.errors import OperatorMustAct

__all__ = ["DataDirectoryLock", "running_host"]

_NAME = "host.lock"


class DataDirectoryLock:
    """Holds ``host.lock`` in a data directory, which it makes where there is none.

    The kernel releases it when the process ends, however it ends; the file stays.

    Raises:
        OperatorMustAct: on entering, another process holds it, or the directory cannot be used.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._file: int | None = None

    def __enter__(self) -> Self:
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._data_dir / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OperatorMustAct(
                f"the data directory {self._data_dir} cannot be used: {error.strerror}. Make it writable, or set host.data_dir."
            ) from None
        try:
            _lock(file)
        except OSError as error:
            holder = _read_pid(file)
            os.close(file)
            if not isinstance(error, BlockingIOError):
                raise OperatorMustAct(f"{self._data_dir} cannot be locked: {error.strerror}. Use a folder on a local disk.") from None
            who = f"process {holder}" if holder else "another process"
            raise OperatorMustAct(
                f"{who} already runs on the data directory {self._data_dir}. Stop it first, or set another host.data_dir."
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def running_host(data_dir: Path) -> int | None:
    """The pid of the process that holds the data directory, 0 where it does not say; None where nobody does."""
    try:
        file = os.open(data_dir / _NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_pid(file) or 0
    except OSError:
        return None
    else:
        return None
    finally:
        os.close(file)


def _lock(file: int) -> None:
    """Asks more than once: ``running_host`` of another process holds the lock for an instant while it looks."""
    for _ in range(3):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read_pid(file: int) -> int | None:
    text = os.pread(file, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None
