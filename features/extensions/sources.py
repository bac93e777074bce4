"""Finding extensions on the disk and reading them, once: what is hashed is what runs."""

import ast
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

__all__ = [
    "BrokenExtensionError",
    "Declared",
    "ExtensionSource",
    "Snapshot",
    "check_name",
    "check_priority",
    "declared",
    "find_sources",
    "plain_name",
    "read_snapshot",
]

_NAME = re.compile(r"[a-z0-9-]{1,64}")
_ENTRY = "extension.py"
_PACKAGE = "__init__.py"
_MOST_FILES = 500
_MOST_BYTES = 8_000_000
_PRIORITIES = 1_000_000


class BrokenExtensionError(Exception):
    """An extension that cannot be used; the text says why, in words for its author."""


class ExtensionSource(msgspec.Struct, frozen=True, kw_only=True):
    """An extension's place on the disk: a file, or a folder whose file ``entry`` holds ``activate``."""

    path: Path
    entry: str
    is_folder: bool


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """An extension's files as they were read, by their path inside it. ``digest`` is over all of them, names and contents."""

    source: ExtensionSource
    files: dict[str, bytes]
    digest: str


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What an extension says about itself without being run."""

    name: str
    priority: int


def find_sources(path: Path) -> Iterator[ExtensionSource]:
    """The extensions that a path names: a file, a folder that is one, or a folder of files and of folders that are.

    Raises:
        BrokenExtensionError: there is nothing of the kind.
    """
    try:
        if path.is_file():
            yield ExtensionSource(path=path, entry=path.name, is_folder=False)
            return
        if not path.is_dir():
            raise BrokenExtensionError("it is neither a file nor a folder" if path.exists() else "there is no such file or folder")
        if (own := _folder_source(path)) is not None:
            yield own
            return
        for child in sorted(path.iterdir()):
            if child.name.startswith((".", "_")):
                continue
            if child.suffix == ".py" and not child.is_dir():
                yield ExtensionSource(path=child, entry=child.name, is_folder=False)
            elif child.is_dir() and (found := _folder_source(child)) is not None:
                yield found
    except OSError as error:
        raise BrokenExtensionError(f"it cannot be read: {error.strerror}") from None


def _folder_source(folder: Path) -> ExtensionSource | None:
    entry = next((name for name in (_ENTRY, _PACKAGE) if (folder / name).exists()), None)
    return ExtensionSource(path=folder, entry=entry, is_folder=True) if entry is not None else None


def read_snapshot(source: ExtensionSource, *, strict: bool) -> Snapshot:
    """Read an extension.

    Args:
        strict: every file is read and counts in the digest, and a symlink, which could change what it leads to, is refused. Otherwise
            only Python files are read.

    Raises:
        BrokenExtensionError: it cannot be read, or is too large.
    """
    files: dict[str, bytes] = {}
    room = _MOST_BYTES
    for inside, path in _files(source, strict=strict):
        if len(files) == _MOST_FILES:
            raise BrokenExtensionError(f"it has more than {_MOST_FILES} files")
        content = _read(path, room, follow=not strict)
        room -= len(content)
        files[inside] = content
    return Snapshot(source=source, files=files, digest=_digest(files))


def _files(source: ExtensionSource, *, strict: bool) -> Iterator[tuple[str, Path]]:
    if not source.is_folder:
        yield source.entry, source.path
        return
    if strict and source.path.is_symlink():
        raise BrokenExtensionError("it is a symlink; copy the folder itself there")
    for folder, folders, names in os.walk(source.path):
        folders.sort()
        here = Path(folder)
        if strict and any((here / name).is_symlink() for name in folders):
            raise BrokenExtensionError("a folder in it is a symlink; copy the folder itself there")
        if not strict:
            folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in sorted(names):
            if strict or name.endswith(".py"):
                yield (here / name).relative_to(source.path).as_posix(), here / name


def _read(path: Path, room: int, *, follow: bool) -> bytes:
    """A regular file's content. A pipe in its place must not hang the host, nor a symlink lead out."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BrokenExtensionError(f"{path.name} is no ordinary file")
            content = file.read(room + 1)
    except OSError as error:
        why = "it is a symlink; copy the file itself there" if path.is_symlink() and not follow else error.strerror
        raise BrokenExtensionError(f"{path.name} cannot be read: {why}") from None
    if len(content) > room:
        raise BrokenExtensionError(f"it is larger than {_MOST_BYTES // 1_000_000} MB")
    return content


def _digest(files: dict[str, bytes]) -> str:
    """Each name and content is hashed by itself first, so that no shift between them gives the same."""
    whole = hashlib.sha256(b"pumice extension 1\n")
    for name, content in sorted(files.items()):
        whole.update(hashlib.sha256(os.fsencode(name)).digest() + hashlib.sha256(content).digest())
    return whole.hexdigest()


def plain_name(path: Path) -> str:
    """What an extension is called that says nothing itself."""
    return path.name.removesuffix(".py").lower().replace("_", "-")


def declared(snapshot: Snapshot) -> Declared:
    """``NAME`` and ``PRIORITY`` of the entry file, read and not run: whether it may run depends on them.

    Raises:
        BrokenExtensionError: the file is no Python, or one of them is not what it must be.
    """
    try:
        tree = ast.parse(snapshot.files[snapshot.source.entry], snapshot.source.entry)
    except SyntaxError as error:
        raise BrokenExtensionError(f"syntax error in {snapshot.source.entry}, line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BrokenExtensionError(f"{snapshot.source.entry} is no Python: {str(error) or type(error).__name__}") from None
    values = dict(_constants(tree))
    name = values.get("NAME", plain_name(snapshot.source.path))
    return Declared(name=check_name(name), priority=check_priority(values.get("PRIORITY", 0)))


def check_name(name: object) -> str:
    """
    Raises:
        BrokenExtensionError: it is no extension's name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BrokenExtensionError(f"{name!r} is no extension's name: 1 to 64 of a-z, 0-9 and '-'. Set NAME to one.")
    return name


def check_priority(priority: object) -> int:
    """
    Raises:
        BrokenExtensionError: it is no whole number, or too large.
    """
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > _PRIORITIES:
        raise BrokenExtensionError(f"PRIORITY is {priority!r}; write a whole number from -{_PRIORITIES} to {_PRIORITIES}")
    return priority


def _constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id in ("NAME", "PRIORITY"):
                yield target.id, _literal(target.id, node.value)


def _literal(name: str, value: ast.expr | None) -> object:
    try:
        return ast.literal_eval(value) if value is not None else None
    except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError):
        raise BrokenExtensionError(f"{name} is worked out by code; write its value itself, it is read before the code may run") from None
