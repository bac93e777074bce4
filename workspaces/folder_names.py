"""Names on the disk for what people and platforms name."""

import hashlib
import re
import unicodedata

from features.contracts.chat import Address

__all__ = ["place_name", "safe_file_name"]

_MAX_NAME_CHARS = 120
_READABLE_CHARS = 80
_PLAIN_CHANNEL = re.compile(r"[A-Za-z0-9]")
_PLAIN_CHAT = re.compile(r"[A-Za-z0-9-]")

_MAX_FILE_BYTES = 160
_MAX_EXTENSION_BYTES = 20
_FORBIDDEN = re.compile(r'[<>:"|?*]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)")
_NO_NAME = "file"


def place_name(place: Address) -> str:
    """``channel-chat``; no two places have the same.

    Every other character stands as ``_`` and two hex digits for each of its bytes, so the name could be read back. One that gets too long
    ends in ``_z`` and a hash instead, which no escape looks like.
    """
    place = place.place
    name = f"{_escaped(place.channel, _PLAIN_CHANNEL)}-{_escaped(place.chat, _PLAIN_CHAT)}"
    if len(name) <= _MAX_NAME_CHARS:
        return name
    digest = hashlib.sha256(name.encode("ascii")).hexdigest()[:32]
    return f"{name[:_READABLE_CHARS]}_z{digest}"


def safe_file_name(name: str) -> str:
    """A name that somebody gave a file, as one that is safe on any disk and in any listing; its extension is kept.

    Folders in it, control characters and marks that turn the writing direction (``gpj.exe`` shown as ``exe.jpg``) are gone.
    """
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(character for character in last if _is_printable(character))
    plain = _FORBIDDEN.sub("_", " ".join(printable.split())).strip(". ")
    if not plain:
        return _NO_NAME
    return _shortened(f"_{plain}" if _RESERVED.match(plain) else plain)


def _escaped(text: str, plain: re.Pattern[str]) -> str:
    return "".join(
        character if plain.fullmatch(character) else "".join(f"_{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        for character in text
    )


def _is_printable(character: str) -> bool:
    """Also false for direction and other invisible marks, halves of characters and private ones."""
    return character.isspace() or unicodedata.category(character)[0] != "C"


def _shortened(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension.encode()) > _MAX_EXTENSION_BYTES:
        stem, dot, extension = name, "", ""
    room = _MAX_FILE_BYTES - len(f"{dot}{extension}".encode())
    return stem.encode()[:room].decode("utf-8", "ignore").rstrip(". ") + dot + extension
