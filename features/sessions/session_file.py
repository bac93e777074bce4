"""One session file on the disk, in the hands of its only writer."""

import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from features.contracts.errors import OperatorMustAct, UserMustAct
from features.contracts.sessions import SessionEntry, SessionLines
from features.sessions.codec import encode, well_formed
from features.sessions.leaf_marks import leaf_mark, leaf_of, without_marks
from features.sessions.session_text import SessionText, read_session_text

__all__ = ["SessionFile", "create_session_file", "read_session_file"]

_OPENINGS = 5
_TAIL_PIECE = 64 * 1024


class SessionFile:
    """Holds the kernel's lock on the file until it is closed, so that two programs never write the same session.

    A file that is damaged or of an older version is put in order when it is opened; the file as it was stays beside it under the name
    ``FILE.original``. Every call blocks and returns once what it did is on the disk.

    Raises, from every call:
        OperatorMustAct: the disk is full or will not take it; the file is as it was then.
    """

    def __init__(self, path: Path, file: int, size: int, text: SessionText) -> None:
        self.path = path
        self.header_line = text.header_line
        self.header = text.header
        self.entries = without_marks(text.entries)
        self.leaf = leaf_of(text.entries)
        self.line_count = len(text.lines)
        self.warnings = tuple(text.warnings)
        self._ids = {entry.id for entry in text.entries}
        self._file = file
        self._size = size

    @classmethod
    def open(cls, path: Path, *, ids: Callable[[], str], timestamp: str) -> Self:
        """Open a file that is there.

        Raises:
            FileNotFoundError: it is not.
            UserMustAct: another program has it, it cannot be read, or it holds no session; it is left as it is.
        """
        file = _locked(path)
        try:
            data = _all_of(file)
            text = read_session_text(data, ids=ids, timestamp=timestamp)
            if not text.faithful:
                _keep_beside(path)
                file = _put_in_place(path, _bytes_of(text.header_line, text.lines), file)
            elif not data.endswith(b"\n"):
                _write(file, len(data), b"\n")
            return cls(path, file, os.fstat(file).st_size, text)
        except UserMustAct as error:
            os.close(file)
            raise UserMustAct(f"{path}: {error}") from None
        except BaseException:
            os.close(file)
            raise

    def append(self, entries: Sequence[SessionEntry], leaf: str | None) -> None:
        """Add entries, all or none.

        Raises:
            ValueError: an id is taken.
            KeyError: ``leaf`` is not there.
        """
        kept = [well_formed(entry) for entry in entries]
        taken = set(self._ids)
        for entry in kept:
            if entry.id in taken:
                raise ValueError(f"entry {entry.id} is there already")
            taken.add(entry.id)
        if leaf is not None and leaf not in taken:
            raise KeyError(leaf)
        lines = [encode(entry) for entry in kept]
        if leaf != (kept[-1].id if kept else self.leaf):
            mark = leaf_mark(leaf, taken, self._last_time(kept))
            lines.append(encode(mark))
            taken.add(mark.id)
        if lines:
            self._size = _write(self._file, self._size, "".join(f"{line}\n" for line in lines).encode())
        self._ids = taken
        self.entries += kept
        self.leaf = leaf
        self.line_count += len(lines)

    def replace(self, lines: SessionLines) -> None:
        """Put other lines in the place of all that is there."""
        data = _bytes_of(lines.header, _with_leaf(lines))
        text = read_session_text(data, ids=lambda: self.header.id, timestamp=self.header.timestamp)
        file = _put_in_place(self.path, data, self._file)
        self.__init__(self.path, file, len(data), text)  # type: ignore[misc]

    def delete(self) -> None:
        """Take the file away; the object is of no more use."""
        self.path.unlink(missing_ok=True)
        _flush_folder(self.path.parent)
        self.close()

    def close(self) -> None:
        os.close(self._file)

    def _last_time(self, entries: Sequence[SessionEntry]) -> str:
        last = entries[-1] if entries else self.entries[-1] if self.entries else None
        return self.header.timestamp if last is None else last.timestamp


def create_session_file(path: Path, lines: SessionLines, *, over_empty: bool = False) -> None:
    """Make a file that is there as a whole or not at all.

    Args:
        over_empty: whether an empty file may stand there already.

    Raises:
        FileExistsError: something stands there.
    """
    if over_empty and path.exists() and path.stat().st_size:
        raise FileExistsError(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorMustAct(f"{path.parent} cannot be made: {error.strerror}. Make what is above it writable.") from None
    draft = _draft(path, _bytes_of(lines.header, _with_leaf(lines)))
    try:
        if over_empty:
            draft.replace(path)
        else:
            _link(draft, path)
        _flush_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def read_session_file(path: Path, *, ids: Callable[[], str], timestamp: str) -> SessionText:
    """Read a file as it is, whoever writes it, and leave it so.

    Raises:
        FileNotFoundError: it is not there.
        UserMustAct: it cannot be read, or holds no session.
    """
    try:
        return read_session_text(path.read_bytes(), ids=ids, timestamp=timestamp)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserMustAct(f"{path} cannot be read: {error.strerror}.") from None
    except UserMustAct as error:
        raise UserMustAct(f"{path}: {error}") from None


def _with_leaf(lines: SessionLines) -> list[str]:
    """The lines, with one more where the conversation does not go on behind the last."""
    text = read_session_text(_bytes_of(lines.header, lines.entries), ids=str, timestamp="")
    if lines.leaf == leaf_of(text.entries):
        return list(lines.entries)
    last = text.entries[-1].timestamp if text.entries else text.header.timestamp
    return [*lines.entries, encode(leaf_mark(lines.leaf, {entry.id for entry in text.entries}, last))]


def _bytes_of(header_line: str, lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in (header_line, *lines)).encode()


def _locked(path: Path) -> int:
    """The file, open and locked; the one that stands there now, however often it is replaced meanwhile."""
    for _ in range(_OPENINGS):
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise UserMustAct(f"{path} cannot be opened for writing: {error.strerror}.") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            os.close(file)
            raise UserMustAct(f"{path} is in use by another program. Close it there first.") from None
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    raise UserMustAct(f"{path} is being replaced over and over by another program. Stop that first.")


def _all_of(file: int) -> bytes:
    pieces = []
    at = 0
    while piece := os.pread(file, 1 << 20, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _write(file: int, size: int, data: bytes) -> int:
    """Write behind what is there and give the new size; what cannot be written as a whole is taken back."""
    at = size
    rest = memoryview(data)
    try:
        while rest:
            written = os.pwrite(file, rest, at)
            rest, at = rest[written:], at + written
        os.fsync(file)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(file, size)
        raise OperatorMustAct(f"the session file could not be written: {error.strerror}. Make room, or look at the disk.") from None
    return at


def _put_in_place(path: Path, data: bytes, old: int) -> int:
    """Replace a file that is held; gives the new one, held too."""
    draft = _draft(path, data)
    try:
        file = os.open(draft, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.copymode(path, draft)
            draft.replace(path)
            _flush_folder(path.parent)
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        raise OperatorMustAct(f"{path} could not be written: {error.strerror}. Make room, or look at the folder.") from None
    finally:
        draft.unlink(missing_ok=True)
    os.close(old)
    return file


def _draft(path: Path, data: bytes) -> Path:
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write(file, 0, data)
        finally:
            os.close(file)
    except OSError as error:
        raise OperatorMustAct(f"{path.parent} cannot be written: {error.strerror}. Make it writable.") from None
    return draft


def _keep_beside(path: Path) -> None:
    """Keep the file as it is under another name, never over one that was kept before."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.original" + (f"-{number}" if number > 1 else ""))
        try:
            _link(path, kept)
        except FileExistsError:
            number += 1
        else:
            return


def _link(source: Path, name: Path) -> None:
    """Give a file one more name; FileExistsError where that is taken."""
    try:
        os.link(source, name)
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links
        try:
            with source.open("rb") as read, name.open("xb") as written:
                shutil.copyfileobj(read, written)
                written.flush()
                os.fsync(written.fileno())
        except FileExistsError:
            raise
        except OSError as error:
            raise OperatorMustAct(f"{name} could not be written: {error.strerror}. Make room, or look at the folder.") from None


def _flush_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
