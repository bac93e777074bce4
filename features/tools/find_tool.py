"""The ``find`` tool."""

from typing import Literal

from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult
from features.tools.background import Stop, in_thread
from features.tools.file_walk import walk
from features.tools.files import WorkspaceFiles
from features.tools.linear_pattern import glob_test
from features.tools.search_result import SEARCH_LIMIT_S, listing

__all__ = ["FindTool"]

_DEFAULT_LIMIT = 1000
_MAX_LIMIT = 100_000


class FindTool:
    """Implements ``features.contracts.tools.Tool``."""

    label = "Find"
    prompt_snippet = "find: find files by name"
    prompt_guidelines: tuple[str, ...] = ()
    execution: Literal["parallel", "sequential"] = "parallel"
    spec = ToolSpec(
        name="find",
        description=(
            "Find files and folders whose name fits a glob, hidden ones too; what .gitignore names is left out. A pattern with a slash is "
            f"compared with the whole path below the folder searched. At most {_DEFAULT_LIMIT} results unless limit says otherwise."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Glob like *.py, report-?.pdf or src/**/*.ts"},
                "path": {"type": "string", "description": "Folder to search, the workspace unless given"},
                "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_LIMIT, "description": "How many results at most"},
            },
            "required": ["pattern"],
        },
    )

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def run(self, call: ToolInvocation) -> ToolResult:
        return await in_thread(lambda stop: self._find(call, stop), limit_s=SEARCH_LIMIT_S)

    def _find(self, call: ToolInvocation, stop: Stop) -> ToolResult:
        arguments = call.arguments
        limit = arguments.get("limit", _DEFAULT_LIMIT)
        files = WorkspaceFiles(call.context)
        start = files.locate(arguments.get("path", "."))
        if not files.kind(start):
            raise ModelMustAct(f"Path not found: {start.path}")
        fits = glob_test(arguments["pattern"])
        lines: list[str] = []
        for found in walk(files, start, stop):
            if fits(found.path):
                lines.append(found.path + ("/" if found.kind == "folder" else ""))
            if len(lines) >= limit:
                break
        notices = [f"{limit} results limit reached. Use limit={limit * 2} for more, or refine pattern"] if len(lines) >= limit else []
        return listing(
            lines, empty="No files found matching pattern", notices=notices, max_bytes=self._max_bytes, is_partial=stop.expired
        )
