"""Keeps the agent's file tools away from files that it has no business changing.

It looks at the calls of ``write`` and ``edit``. What a shell command changes it cannot see: where that matters too, switch bash off or let
it ask (``[approvals]``), or take the files out of the workspace.

Configuration::

    [extensions.config.path-guard]
    protected = ["*.lock", ".git/*", "contracts/*"]    # of paths relative to the workspace; * also stands for slashes
"""

import os
import unicodedata
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from features.contracts.extension_events import ToolCalled
from features.contracts.extensions import ExtensionApi

PROTECTED = [".git/*", ".env", "*/.env", "*.pem", "*.key"]
WRITING_TOOLS = ("write", "edit")


async def activate(api: ExtensionApi) -> None:
    protected = list(api.config.get("protected", PROTECTED))

    async def guard(event: ToolCalled) -> None:
        if event.call.name not in WRITING_TOOLS:
            return
        written = str(event.arguments.get("path", ""))
        pattern = forbidding(written, protected, api.session.workspace)
        if pattern is not None:
            event.block(f"{written} is protected in this chat ({pattern}). Leave it as it is and say what you would have changed.")

    api.on(ToolCalled, guard, priority=90)


def forbidding(written: str, protected: Sequence[str], workspace: Path) -> str | None:
    """The pattern that a path falls under, whichever way it is written."""
    names = {plain(name) for name in meant(written, workspace.resolve())}
    return next((pattern for pattern in protected if any(fnmatchcase(name, plain(pattern)) for name in names)), None)


def meant(written: str, workspace: Path) -> Iterator[str]:
    """The names that a path may have inside the workspace: as written and with symlinks followed, and without the ``@`` and the unusual
    spaces that the file tools overlook too."""
    for spelling in (written, unicodedata.normalize("NFKC", written.removeprefix("@"))):
        path = workspace / os.path.expanduser(spelling)  # noqa: PTH111 - "~user" without a home stays as it is
        for full in (os.path.normpath(path), os.path.realpath(path)):
            yield os.path.relpath(full, workspace)


def plain(name: str) -> str:
    """One form for all that may be the same file: case, accents, spaces and apostrophes have several."""
    return unicodedata.normalize("NFKC", name).replace("\u2019", "'").casefold()
