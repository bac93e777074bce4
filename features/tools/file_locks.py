"""One change of a file at a time."""

import asyncio
from pathlib import Path
from weakref import WeakValueDictionary

__all__ = ["file_lock"]

_locks: WeakValueDictionary[tuple[int, Path], asyncio.Lock] = WeakValueDictionary()


def file_lock(path: Path) -> asyncio.Lock:
    """The lock of a resolved path. It is the process's, because several sessions may share a workspace; it goes when nobody holds it."""
    key = id(asyncio.get_running_loop()), path
    lock = _locks.get(key)
    if lock is None:
        lock = _locks[key] = asyncio.Lock()
    return lock
