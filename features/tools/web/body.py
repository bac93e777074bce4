"""The body of an answer, unpacked as far as there is room."""

import zlib
from collections.abc import AsyncIterable

import msgspec

from features.contracts.errors import ModelMustAct

__all__ = ["Body", "read_body"]

_ANY_ZLIB = 47
"""zlib or gzip, whichever it begins like; and no window is too large."""


class Body(msgspec.Struct, frozen=True):
    """``complete`` is False where more was there than could be taken."""

    data: bytes
    complete: bool


async def read_body(pieces: AsyncIterable[bytes], *, coding: str, limit: int) -> Body:
    """At most ``limit`` bytes, unpacked; neither what comes nor what it unpacks to is ever held beyond that.

    Raises:
        ModelMustAct: it is packed in a way that nobody asked for, or damaged.
    """
    unpacking = _unpacking(coding)
    data = bytearray()
    came = 0
    async for piece in pieces:
        came += len(piece)
        try:
            data += piece[: limit - len(data) + 1] if unpacking is None else unpacking.take(piece, limit - len(data) + 1)
        except zlib.error:
            raise ModelMustAct("the answer is damaged: it says that it is compressed and cannot be unpacked") from None
        if len(data) > limit or came > limit:
            return Body(bytes(data[:limit]), complete=False)
    return Body(bytes(data), complete=True)


class _Unpacking:
    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_ANY_ZLIB)
        self._begun = False

    def take(self, piece: bytes, room: int) -> bytes:
        if not self._begun and piece:
            self._begun = True
            if not _has_header(piece):  # some servers call a bare stream deflate
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._inflate.decompress(piece, room)


def _has_header(piece: bytes) -> bool:
    gzip = piece[0] == 0x1F
    return gzip or (piece[0] & 0x0F == 8 and (len(piece) < 2 or (piece[0] << 8 | piece[1]) % 31 == 0))


def _unpacking(coding: str) -> _Unpacking | None:
    match coding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return _Unpacking()
        case other:
            raise ModelMustAct(f"the answer is packed as {other!r}, which was not asked for and cannot be read")
