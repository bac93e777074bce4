"""The ``ls`` tool."""

import os
import stat
from typing import Literal

from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult
from features.tools.background import Stop, in_thread
from features.tools.file_walk import shown_name
from features.tools.files import WorkspaceFiles
from features.tools.search_result import SEARCH_LIMIT_S, listing

__all__ = ["LsTool"]

_DEFAULT_LIMIT = 500
_MAX_LIMIT = 100_000


class LsTool:
    """Implements ``features.contracts.tools.Tool``."""

    label = "List"
    prompt_snippet = "ls: list a folder"
    prompt_guidelines: tuple[str, ...] = ()
    execution: Literal["parallel", "sequential"] = "parallel"
    spec = ToolSpec(
        name="ls",
        description=f"List a folder, hidden entries too; folders end in a slash. At most {_DEFAULT_LIMIT} entries unless limit says otherwise.",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Folder to list, the workspace unless given"},
                "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_LIMIT, "description": "How many entries at most"},
            },
        },
    )

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def run(self, call: ToolInvocation) -> ToolResult:
        return await in_thread(lambda stop: self._list(call, stop), limit_s=SEARCH_LIMIT_S)

    def _list(self, call: ToolInvocation, stop: Stop) -> ToolResult:
        limit = call.arguments.get("limit", _DEFAULT_LIMIT)
        files = WorkspaceFiles(call.context)
        located = files.locate(call.arguments.get("path", "."))
        match files.kind(located):
            case "":
                raise ModelMustAct(f"Path not found: {located.path}")
            case "a directory":
                pass
            case _:
                raise ModelMustAct(f"Not a directory: {located.path}")
        lines: list[str] = []
        with files.open_folder(located) as folder:
            names = sorted(os.listdir(folder), key=lambda name: (name.casefold(), name))  # noqa: PTH208 - of a descriptor
            for name in names[:limit]:
                stop.check()
                if stop.expired:
                    break
                if (is_folder := _is_folder(name, folder)) is not None:
                    lines.append(shown_name(name) + ("/" if is_folder else ""))
        notices = [f"{limit} entries limit reached. Use limit={limit * 2} for more"] if len(names) > limit else []
        return listing(lines, empty="(empty directory)", notices=notices, max_bytes=self._max_bytes, is_partial=stop.expired)


def _is_folder(name: str, folder: int) -> bool | None:
    """None for an entry that leads nowhere."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
    except OSError:
        return None
