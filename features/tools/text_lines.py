"""Lines of a file of any size, in little memory."""

from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["SNIFF_BYTES", "lines_of", "looks_binary"]

SNIFF_BYTES = 8192


def lines_of(file: BinaryIO, *, longest: int) -> Iterator[tuple[bytes, int]]:
    """Each line without its line end, cut to ``longest`` bytes, and the size it really has. A line end that closes the file begins none."""
    while line := file.readline(longest + 2):
        size = len(line)
        piece = line
        while not piece.endswith(b"\n") and (piece := file.readline(1_048_576)):
            size += len(piece)
        size -= piece.endswith(b"\n")
        yield line.rstrip(b"\r\n")[:longest] if size <= longest + 1 else line[:longest], size


def looks_binary(head: bytes) -> bool:
    """Whether the beginning of a file is no text: it holds a NUL, or mostly bytes that no UTF-8 has."""
    if b"\0" in head:
        return True
    replaced = head.decode("utf-8", "replace").count("\ufffd")
    return replaced * 10 > len(head) * 3
