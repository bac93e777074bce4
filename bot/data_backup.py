"""The whole data directory as one file, and back.

The file is a gzipped tar: ``pumice-backup.json`` first, then the directory's files. The database in it is one committed state, copied while
work goes on; files are copied after it, so that whatever it names is there.
"""

import gzip
import io
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from bot.lock import DataDirectoryLock
from features.contracts.errors import OperatorMustAct

__all__ = ["restore_data", "write_backup"]

_MANIFEST = "pumice-backup.json"
_FORMAT = 1
_DATABASE = "state.db"
_LEFT_OUT = frozenset({"host.lock", "http.url", _DATABASE, f"{_DATABASE}-wal", f"{_DATABASE}-shm", f"{_DATABASE}-journal"})
_IN_MEMORY = 8 * 1024 * 1024


async def write_backup(data_dir: Path, database: Path, target: Path, *, at: datetime, version: str) -> int:
    """Write everything into ``target``, which appears only once it is complete; gives its size in bytes.

    Args:
        database: where the host keeps its database; it need not lie in ``data_dir``.

    Raises:
        OperatorMustAct: there is nothing to back up, or the file cannot be written.
    """
    from features.storage import Database

    if not database.exists():
        raise OperatorMustAct(f"There is no data in {data_dir} yet. Start the host first, or name its --data-dir.")
    target = target.absolute()
    if target.is_relative_to(data_dir.absolute()):
        raise OperatorMustAct(f"{target} lies in the data directory, so the backup would hold itself. Choose a file elsewhere.")
    unfinished = target.with_name(f".{target.name}.partial")
    try:
        with tempfile.TemporaryDirectory(prefix=".pumice-backup-", dir=target.parent) as scratch:
            copy = Path(scratch) / _DATABASE
            await Database(database, ()).backup(copy)
            _write(data_dir, copy, unfinished, manifest={"format": _FORMAT, "version": version, "at": at.isoformat()})
        unfinished.replace(target)
    except OSError as error:
        raise OperatorMustAct(f"{target} cannot be written: {error.strerror or error}. Choose another file.") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return target.stat().st_size


def restore_data(source: Path, data_dir: Path, *, replace: bool, at: datetime) -> Path | None:
    """Make a data directory of a backup; gives where the one that was there before has gone.

    Nothing is at its place before all of it is unpacked and the database in it is sound.

    Args:
        replace: put what is there aside instead of refusing.

    Raises:
        OperatorMustAct: it is no backup, a host runs there, or there is data already.
    """
    data_dir = data_dir.absolute()
    occupied = data_dir.is_dir() and any(entry.name != "host.lock" for entry in data_dir.iterdir())
    if occupied and not replace:
        raise OperatorMustAct(f"There is data in {data_dir} already. Say --replace to put it aside, or name another --data-dir.")
    fresh = data_dir.with_name(f".{data_dir.name}.restoring")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(mode=0o700, parents=True)
        _unpack(source, fresh)
        _check(fresh / _DATABASE, source)
        with DataDirectoryLock(data_dir):  # no host may begin there meanwhile
            aside = data_dir.with_name(f"{data_dir.name}.before-{at:%Y%m%d-%H%M%S}") if occupied else None
            if aside is not None:
                data_dir.rename(aside)
            else:
                shutil.rmtree(data_dir)
            try:
                fresh.rename(data_dir)
            except OSError:
                if aside is not None:
                    aside.rename(data_dir)
                raise
    except OSError as error:
        raise OperatorMustAct(f"{data_dir} cannot be restored: {error.strerror or error}. Make its folder writable.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return aside


def _write(data_dir: Path, database: Path, target: Path, *, manifest: dict[str, Any]) -> None:
    target.unlink(missing_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)  # keys and every chat are in it
    with (
        os.fdopen(descriptor, "wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        _add_bytes(archive, _MANIFEST, json.dumps(manifest).encode())
        archive.add(database, _DATABASE)
        for path in _contents(data_dir):
            _add(archive, path, str(path.relative_to(data_dir)))
    with target.open("rb") as written:
        os.fsync(written.fileno())


def _contents(data_dir: Path) -> Iterator[Path]:
    """Folders before what is in them; symbolic links as such."""
    for folder, names, files in os.walk(data_dir):
        here = Path(folder)
        for name in sorted((*names, *files)):
            if here != data_dir or name not in _LEFT_OUT:
                yield here / name


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """What vanishes meanwhile is left out; a file is taken as long as it is when it is read."""
    try:
        if path.is_socket():
            return
        entry = archive.gettarinfo(path, name)
        if not entry.isreg():
            archive.addfile(entry)
            return
        with path.open("rb") as file, tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
            shutil.copyfileobj(file, copy)
            entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", copy.tell()
            copy.seek(0)
            archive.addfile(entry, _readable(copy))
    except FileNotFoundError:
        return


def _readable(file: Any) -> IO[bytes]:
    readable: IO[bytes] = file
    return readable


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    archive.addfile(entry, io.BytesIO(content))


def _unpack(source: Path, target: Path) -> None:
    no_backup = OperatorMustAct(f"{source} is no backup of Pumice, or it is damaged. Take a file that 'pumice backup' wrote.")
    try:
        with tarfile.open(source, "r|gz") as archive:
            first = archive.next()
            if first is None or first.name != _MANIFEST:
                raise no_backup
            manifest = archive.extractfile(first)
            assert manifest is not None
            told = json.loads(manifest.read(10_000))
            if told["format"] > _FORMAT:
                raise OperatorMustAct(f"{source} was written by Pumice {told['version']}, which is newer. Restore it with that version.")
            while (member := archive.next()) is not None:
                archive.extract(member, target, filter="tar")  # nothing outside of the target, whatever names and links say
    except FileNotFoundError:
        raise OperatorMustAct(f"There is no file {source}. Name one that 'pumice backup' wrote.") from None
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, ValueError, KeyError, TypeError) as error:
        raise no_backup from error


def _check(database: Path, source: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            if connection.execute("PRAGMA integrity_check").fetchone() == ("ok",):
                return
    except sqlite3.Error:
        pass
    raise OperatorMustAct(f"The database in {source} is damaged. Take another backup.")
