"""The ``bash`` tool."""

import asyncio
import re
import signal
from typing import Literal

from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.contracts.processes import ProcessRunner, ProcessSpawnRequest, RunningProcess
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.tools.command_output import CommandOutput
from features.tools.progress import Progress
from features.tools.truncation import size_text

__all__ = ["BashTool"]

_SHELL = "/bin/bash"
_MAX_TIMEOUT_S = 3600


class BashTool:
    """Implements ``features.contracts.tools.Tool``.

    However the call ends, the command's process group is dead before it returns: after the exit, the timeout, and when it is cancelled.
    """

    label = "Bash"
    prompt_snippet = "bash: run a shell command in the workspace"
    prompt_guidelines: tuple[str, ...] = ("Prefer grep, find and ls to bash for looking around; they respect .gitignore.",)
    execution: Literal["parallel", "sequential"] = "parallel"

    def __init__(self, processes: ProcessRunner, *, sandboxed: bool, timeout_s: float, max_bytes: int, max_lines: int) -> None:
        self._processes = processes
        self._sandboxed = sandboxed
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._max_lines = max_lines
        self.spec = ToolSpec(
            name="bash",
            description=(
                "Run a command with bash in the workspace. You get what it prints, errors among it: the last "
                f"{max_lines} lines or {size_text(max_bytes)}; a longer output is kept in a file that the result names. "
                "There is no standard input, and everything the command started ends with it."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command"},
                    "timeout": {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "maximum": max(_MAX_TIMEOUT_S, timeout_s),
                        "description": f"Seconds after which it is stopped; {timeout_s:g} unless given",
                    },
                },
                "required": ["command"],
            },
        )

    async def run(self, call: ToolInvocation) -> ToolResult:
        context = call.context
        if not (context.owner or self._sandboxed):
            raise ModelMustAct(
                "bash is for the owners of this host and nobody else here: commands are not sandboxed. "
                "Use read, write, edit, grep, find and ls, or say that an owner has to ask for it."
            )
        if not context.workspace.is_dir():
            raise ModelMustAct(f"Working directory does not exist: {context.workspace}\nCannot execute bash commands.")
        request = ProcessSpawnRequest(
            argv=(_SHELL, "-c", call.arguments["command"]),
            cwd=context.workspace,
            purpose="bash",
            time_zone=context.time_zone,
            workspace=context.workspace,
            owner=context.owner,
        )
        name = re.sub(r"[^A-Za-z0-9_-]", "_", call.id)[:64]
        output = CommandOutput(context.scratch / f"bash-{name}.log", max_bytes=self._max_bytes, max_lines=self._max_lines)
        try:
            return await self._run(call, request, output)
        finally:
            output.close()

    async def _run(self, call: ToolInvocation, request: ProcessSpawnRequest, output: CommandOutput) -> ToolResult:
        timeout_s = call.arguments.get("timeout", self._timeout_s)
        progress = Progress(call.report, output.tail)
        status: int | None = None
        try:
            async with self._processes.start(request) as process:
                try:
                    async with asyncio.timeout(timeout_s) as limit:
                        status = await _watch(process, output, progress)
                except TimeoutError:
                    if not limit.expired():  # not ours
                        raise
        finally:
            progress.close()
        text, figures = output.finish()
        details = figures.details() if figures.truncated else None
        if problem := _problem(status, timeout_s):
            return text_result(f"{text}\n\n{problem}", details=details, is_error=True)
        return text_result(text, details=details)


async def _watch(process: RunningProcess, output: CommandOutput, progress: Progress) -> int:
    async for piece in process.output():
        output.add(piece)
        progress.changed()
    return await process.wait()


def _problem(status: int | None, timeout_s: float) -> str:
    """What went wrong, empty when nothing did."""
    if status is None:
        return f"Command timed out after {timeout_s:g} seconds"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"Command was killed by {name}"
    return f"Command exited with code {status}" if status else ""
