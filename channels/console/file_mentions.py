"""Files that are named in what somebody types."""

import re
import shlex
from pathlib import Path

__all__ = ["said_files"]

_MENTION = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"]+)\"|(\S+))")


def said_files(text: str, folder: Path) -> list[Path]:
    """The files that ``@path`` names, and a message that is nothing but paths, as a terminal writes what is dragged into it.

    Only what is there counts, so that an address or a command stays text. Relative to ``folder``; ``~`` is the home.
    """
    named = [quoted or plain for quoted, plain in _MENTION.findall(text)]
    found = [path for name in named if (path := _existing(name, folder))]
    return found or _dragged(text, folder)


def _dragged(text: str, folder: Path) -> list[Path]:
    if not text.startswith(("/", "'", '"', "~")):
        return []
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    paths = [_existing(word, folder) for word in words]
    return [path for path in paths if path] if all(paths) else []


def _existing(name: str, folder: Path) -> Path | None:
    try:
        path = folder / Path(name).expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError, ValueError):  # too long, no home, a NUL
        return None
