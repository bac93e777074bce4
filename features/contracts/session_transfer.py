"""Sessions as files, and what comes of checking one."""

from typing import Literal

import msgspec

__all__ = ["CheckedSession", "ExportFormat", "ExportedSession", "ImportedSession"]

ExportFormat = Literal["jsonl", "html", "md"]
"""``jsonl`` is all of a session as pi reads it; ``html`` and ``md`` are for people."""


class ImportedSession(msgspec.Struct, frozen=True, kw_only=True):
    """``warnings`` say for a person what was damaged, changed or left out."""

    id: str
    entries: int
    warnings: list[str]


class ExportedSession(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is a file's name."""

    name: str
    data: bytes


class CheckedSession(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``problems`` say for a person what is wrong, ``remarks`` what is odd and harms nothing.

    ``original`` is the file that keeps what was there before a repair, None where nothing was repaired.
    """

    id: str
    problems: list[str]
    remarks: list[str]
    original: str | None = None
