"""Files on their way out: what Telegram takes, and under which name."""

import re
from pathlib import Path

import msgspec

from channels.markup import clean
from features.contracts.chat import OutboundFile

__all__ = ["MAX_DOWNLOAD_BYTES", "MAX_UPLOAD_BYTES", "NotSendable", "ReadyFile", "examine", "megabytes", "safe_name"]

MAX_UPLOAD_BYTES = 50 * 1024 * 1024
MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024
_MAX_PHOTO_BYTES = 10 * 1024 * 1024
_MAX_NAME = 120
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"<>:|?*]")


class ReadyFile(msgspec.Struct, frozen=True):
    """A file that Telegram should take. ``photo`` says whether as a picture that is shown at once."""

    path: Path
    name: str
    photo: bool


class NotSendable(msgspec.Struct, frozen=True):
    """Why a file is not even tried, in words for people."""

    reason: str


def examine(file: OutboundFile) -> ReadyFile | NotSendable:
    """Look at a file before it is sent; blocking."""
    name = safe_name(file.name or file.path.name)
    try:
        size = file.path.stat().st_size
        with file.path.open("rb") as content:
            head = content.read(12)
    except OSError as error:
        return NotSendable(f"{name} cannot be read: {error.strerror or error}.")
    if not size:
        return NotSendable(f"{name} is empty, and Telegram takes no empty files.")
    if size > MAX_UPLOAD_BYTES:
        return NotSendable(f"{name} has {megabytes(size)}; bots can send files of at most {megabytes(MAX_UPLOAD_BYTES)} on Telegram.")
    return ReadyFile(file.path, name, photo=size <= _MAX_PHOTO_BYTES and _is_picture(head))


def _is_picture(head: bytes) -> bool:
    return head.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")) or (head.startswith(b"RIFF") and head[8:] == b"WEBP")


def safe_name(name: str) -> str:
    """A bare file name: no folders, nothing invisible, not too long, its ending kept."""
    bare = _UNSAFE.sub("_", clean(name).replace("\\", "/").rsplit("/", 1)[-1]).strip(". ")
    if len(bare) > _MAX_NAME:
        stem, dot, ending = bare.rpartition(".")
        keep = dot + ending if stem and len(ending) <= 12 else ""
        bare = bare[: _MAX_NAME - len(keep)] + keep
    return bare or "file"


def megabytes(size: int) -> str:
    """A size as people say it, rounded up at one decimal so that a file just over a limit does not look like the limit."""
    tenths = -(-size * 10 // (1024 * 1024))
    return f"{tenths // 10} MB" if tenths % 10 == 0 else f"{tenths / 10:.1f} MB"
