"""What a hook is, and one thing to tell it."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Errand", "Hook"]


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to tell of ``event``: a command, or a web address that gets a POST; exactly one of them.

    ``argv``'s first word is an absolute path, or a name to be found on the PATH.
    """

    event: str
    argv: tuple[str, ...] = ()
    url: str = ""
    timeout: timedelta = timedelta(seconds=5)


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """One event on its way. ``facts`` go into the environment, ``payload`` into the file or the body; neither is redacted yet."""

    workspace: Path
    time_zone: str
    facts: Mapping[str, str]
    payload: Mapping[str, Any]
