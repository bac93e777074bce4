"""Files that came over HTTP, kept until the chat has taken them."""

import asyncio
import logging
import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Literal

from features.contracts.chat import Attachment
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct

__all__ = ["UploadStore"]

KEPT_SECONDS = 7 * 24 * 3600
_FIRST_PRUNE_SECONDS = 3600  # by then what waited in the inbox while the host was down has been fetched
_PRUNE_SECONDS = 24 * 3600
_PREFIX = "upload:"
_REFERENCE = re.compile(r"upload:[0-9a-f]{32}")
_KINDS: dict[str, Literal["image", "audio", "video", "file"]] = {"image": "image", "audio": "audio", "video": "video"}
log = logging.getLogger("pumice.web")


class UploadStore:
    """Keeps uploads in one folder, under names of its own; what the sender called a file stays a label.

    Files are kept for seven days, because a message may wait that long for its turn.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, data: bytes, *, name: str, mime_type: str | None) -> Attachment:
        """Write a file to the disk; when this returns it survives a crash."""
        key = secrets.token_hex(16)
        await asyncio.to_thread(self._write, key, data)
        kind = _KINDS.get((mime_type or "").partition("/")[0], "file")
        return Attachment(ref=f"{_PREFIX}{key}", name=name, kind=kind, mime_type=mime_type, size=len(data))

    def owns(self, attachment: Attachment) -> bool:
        """Whether this store holds it, in whatever chat it was said."""
        return attachment.ref.startswith(_PREFIX)

    def path(self, attachment: Attachment) -> Path:
        """Where it lies.

        Raises:
            UserMustAct: it is not, or no longer, here.
        """
        if not _REFERENCE.fullmatch(attachment.ref):
            raise UserMustAct(f"{attachment.name!r} is no upload of this host.")
        path = self._folder / attachment.ref.removeprefix(_PREFIX)
        if not path.is_file():
            raise UserMustAct(f"{attachment.name!r} is no longer here; please send it again.")
        return path

    def copy(self, attachment: Attachment, destination: Path, limit: int) -> None:
        """Copy to ``destination``, whole or not at all. Blocks.

        Raises:
            UserMustAct: it is larger than ``limit`` bytes, or gone.
        """
        source = self.path(attachment)
        size = source.stat().st_size
        if size > limit:
            raise UserMustAct(f"{attachment.name!r} has {size / 1_000_000:.1f} MB; at most {limit / 1_000_000:.0f} MB are taken.")
        draft = destination.with_name(f".{secrets.token_hex(8)}.part")
        try:
            shutil.copyfile(source, draft)
            draft.replace(destination)
        finally:
            draft.unlink(missing_ok=True)

    async def prune(self, clock: Clock) -> None:
        """Take away what is older than seven days, once a day, until cancelled."""
        await clock.sleep(_FIRST_PRUNE_SECONDS)
        while True:
            await asyncio.to_thread(self._remove_before, clock.now().timestamp() - KEPT_SECONDS)
            await clock.sleep(_PRUNE_SECONDS)

    def _write(self, key: str, data: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._folder / f".{key}"
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._folder / key)
        finally:
            draft.unlink(missing_ok=True)
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)  # the name too, not only the bytes
        finally:
            os.close(handle)

    def _remove_before(self, moment: float) -> None:
        if not self._folder.is_dir():
            return
        count = 0
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # the page's channel and the terminal's both look, and a draft gets its name meanwhile
                if path.lstat().st_mtime < moment:
                    path.unlink()
                    count += 1
        if count:
            log.info("old uploads removed", extra={"facts": {"count": count}})
