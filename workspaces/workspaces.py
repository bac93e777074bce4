"""The entry type of the room."""

import os
import re
from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from features.contracts.chat import Address
from features.contracts.errors import OperatorMustAct
from workspaces.folder_names import place_name, safe_file_name

__all__ = ["Workspaces"]

_TEMPLATES = Path(__file__).parent / "templates"
_HOST_FOLDER = ".pumice"
_MAX_REMEMBERED = 1000
_MAX_MESSAGE_ID_CHARS = 64


class Workspaces:
    """Folders of places under ``root``, each made when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._promised: OrderedDict[Path, None] = OrderedDict()

    def name(self, place: Address) -> str:
        """The folder's name, ``telegram-1001`` for ``telegram:1001``; a thread has that of its place."""
        return place_name(place)

    def folder(self, place: Address) -> Path:
        """The place's folder with all that belongs into one; what is missing is made, what is there stays as it is.

        Raises:
            OperatorMustAct: something else stands where a folder belongs.
        """
        folder = self._root / self.name(place)
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        _own_folder(folder / "attachments")
        _own_folder(folder / _HOST_FOLDER)
        _own_folder(folder / _HOST_FOLDER / "tmp")
        _own_folder(folder / _HOST_FOLDER / "extensions")
        for template in sorted(_TEMPLATES.glob("*.md")):
            _make_from(template, folder / template.name)
        return folder

    def scratch(self, place: Address) -> Path:
        """Where full outputs of cut tool results go."""
        return self.folder(place) / _HOST_FOLDER / "tmp"

    def host_folder(self, place: Address) -> Path:
        """The folder in the place's own that the host alone writes to."""
        return self.folder(place) / _HOST_FOLDER

    def extensions(self, place: Address) -> Path:
        """Where the place's own extensions are put, by whoever runs the host."""
        return self.folder(place) / _HOST_FOLDER / "extensions"

    def attachment_path(self, place: Address, message_id: str, name: str) -> Path:
        """Where a file that somebody sent shall be written: ``attachments/<message id>-<safe name>``.

        The path was never given out before and nothing stands there yet.
        """
        attachments = self.folder(place) / "attachments"
        message = re.sub(r"[^A-Za-z0-9-]", "_", message_id)[:_MAX_MESSAGE_ID_CHARS] or "0"
        wanted = Path(f"{message}-{safe_file_name(name)}")
        path, number = attachments / wanted, 1
        while path in self._promised or os.path.lexists(path):
            number += 1
            path = attachments / f"{wanted.stem}-{number}{wanted.suffix}"
        self._promised[path] = None
        while len(self._promised) > _MAX_REMEMBERED:
            self._promised.popitem(last=False)
        return path

    def move(self, old: Address, new: Address) -> None:
        """Bring a place's folder under its new name. The old name leads there too, for paths that somebody remembers.

        What was made under the new name meanwhile stays beside it, with ``.new`` behind its name.
        """
        source, target = self._root / self.name(old), self._root / self.name(new)
        if source == target or source.is_symlink() or not source.is_dir():
            return
        if target.is_dir() and not target.is_symlink():
            aside = target.with_name(f"{target.name}.new")
            if not os.path.lexists(aside):
                target.rename(aside)
        source.rename(target)
        source.symlink_to(target.name, target_is_directory=True)

    def inside(self, path: Path, roots: Iterable[Path]) -> bool:
        """Whether a path, every symlink in it resolved, is one of the roots or lies in one."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(root)) for root in roots)

    def prune_scratch(self, place: Address, older_than: datetime) -> int:
        """Delete the full outputs last written before ``older_than``; returns how many. Symlinks are not followed."""
        limit = older_than.timestamp()
        deleted = 0
        scratch = self._root / self.name(place) / _HOST_FOLDER / "tmp"
        if scratch.is_symlink() or not scratch.is_dir():
            return 0
        with os.scandir(scratch) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < limit:
                    Path(entry).unlink(missing_ok=True)
                    deleted += 1
        return deleted


def _own_folder(path: Path) -> None:
    """Make a folder that the host writes to. A symlink in its place, which could lead anywhere, is taken away."""
    if path.is_symlink():
        path.unlink()
    try:
        path.mkdir(exist_ok=True, mode=0o700)
    except FileExistsError:
        raise OperatorMustAct(f"{path} is a file and not a folder. Move it away.") from None


def _make_from(template: Path, target: Path) -> None:
    """Copy a template in one step, unless something has that name."""
    if os.path.lexists(target):
        return
    copy = target.parent / _HOST_FOLDER / f"{target.name}.new"
    copy.unlink(missing_ok=True)
    copy.write_bytes(template.read_bytes())
    try:
        os.link(copy, target)  # unlike a rename it never replaces what came meanwhile
    except FileExistsError:
        pass
    except OSError:  # a disk without hard links
        copy.replace(target)
    copy.unlink(missing_ok=True)
