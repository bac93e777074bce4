"""The ``write`` tool."""

from typing import Literal

from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.tools.background import in_thread
from features.tools.file_locks import file_lock
from features.tools.files import WorkspaceFiles

__all__ = ["WriteTool"]


class WriteTool:
    """Implements ``features.contracts.tools.Tool``."""

    label = "Write"
    prompt_snippet = "write: make a file or replace it whole"
    prompt_guidelines: tuple[str, ...] = ("Use write for new files and complete rewrites, edit for everything smaller.",)
    execution: Literal["parallel", "sequential"] = "parallel"
    spec = ToolSpec(
        name="write",
        description="Make a file with the given content, or replace what it holds. Missing folders are made.",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to write, relative to the workspace or absolute"},
                "content": {"type": "string", "description": "All that the file shall hold"},
            },
            "required": ["path", "content"],
        },
    )

    async def run(self, call: ToolInvocation) -> ToolResult:
        files = WorkspaceFiles(call.context)
        content = call.arguments["content"].encode("utf-8", "replace")
        located = files.locate_target(call.arguments["path"], guess=False)
        async with file_lock(located.path):
            await in_thread(lambda stop: files.replace(located, content, stop))
        return text_result(f"Successfully wrote {len(content)} bytes to {located.written}")
