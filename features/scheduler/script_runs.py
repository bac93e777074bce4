"""What looks whether there is something to do, so that no model has to: a watcher's script, or a file that says what to look after."""

import asyncio
from datetime import timedelta
from pathlib import Path

import msgspec

from features.contracts.errors import ModelMustAct, PumiceError
from features.contracts.jobs import JobDelivery
from features.contracts.processes import ProcessRunner, ProcessSpawnRequest, RunningProcess
from features.scheduler.heartbeat import HEARTBEAT
from features.scheduler.job import Job, JobDefinition
from features.scheduler.options import SchedulerOptions

__all__ = ["ScriptResult", "ScriptRuns"]

_SHELL = "/bin/bash"
_MOST_SHOWN = 16_000
_MOST_WRITTEN = 100_000_000
_CHECKED_CHARS = 16_000


class ScriptResult(msgspec.Struct, frozen=True, kw_only=True):
    """``output`` is what it printed, at most its last 16,000 characters; ``problem`` says what went wrong, empty where nothing did."""

    output: str
    problem: str = ""


class ScriptRuns:
    """Looks for the jobs that look first."""

    def __init__(self, processes: ProcessRunner, delivery: JobDelivery, options: SchedulerOptions) -> None:
        self._processes = processes
        self._delivery = delivery
        self._options = options

    async def look(self, job: Job) -> ScriptResult:
        """What there is to do; nothing for an empty output. Never raises for what may be wrong with a script or its folder."""
        definition = job.definition
        try:
            folder = await self._delivery.folder(definition.place)
            if not definition.script:
                return ScriptResult(output=await asyncio.to_thread(_readable, folder / definition.checks_file))
            if not self._may_run(definition):
                return ScriptResult(output="", problem="this host does not run scripts for whoever made this job")
            return await _run_script(
                self._processes, definition.script, folder=folder, zone=job.zone, owner=definition.owner,
                timeout=self._options.script_timeout,
            )  # fmt: skip
        except (PumiceError, OSError) as error:
            return ScriptResult(output="", problem=str(error))

    def _may_run(self, definition: JobDefinition) -> bool:
        """The heartbeat's check is the configuration's own; all others are an agent's."""
        allowed = self._options.scripts
        return definition.key == HEARTBEAT or allowed == "everybody" or (allowed == "owners" and definition.owner)


async def _run_script(processes: ProcessRunner, script: str, *, folder: Path, zone: str, owner: bool, timeout: timedelta) -> ScriptResult:
    """Run a script through the spawn policy, without a session. Whatever happens, nothing of it is left running."""
    request = ProcessSpawnRequest(
        argv=(_SHELL, "-c", script), cwd=folder, purpose="watcher", time_zone=zone, workspace=folder, owner=owner
    )  # fmt: skip
    kept = _Tail()
    try:
        async with processes.start(request) as process:
            try:
                async with asyncio.timeout(timeout.total_seconds()) as limit:
                    status = await _watch(process, kept)
            except TimeoutError:
                if not limit.expired():  # not ours
                    raise
                return ScriptResult(output=kept.text(), problem=f"stopped after {timeout.total_seconds():g} seconds")
    except ModelMustAct as error:  # the policy refused it, or there is no such shell
        return ScriptResult(output="", problem=str(error))
    if status is None:
        return ScriptResult(output=kept.text(), problem=f"stopped because it printed more than {_MOST_WRITTEN // 1_000_000} MB")
    if status:
        told = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return ScriptResult(output=kept.text(), problem=f"{told}: {kept.text()[-300:].strip()}".rstrip(": "))
    return ScriptResult(output=kept.text())


async def _watch(process: RunningProcess, kept: "_Tail") -> int | None:
    """The exit status; None for one that printed too much."""
    async for piece in process.output():
        kept.add(piece)
        if kept.written > _MOST_WRITTEN:
            return None
    return await process.wait()


class _Tail:
    """The end of an output, in constant memory."""

    def __init__(self) -> None:
        self.written = 0
        self._kept = ""

    def add(self, piece: str) -> None:
        self.written += len(piece)
        self._kept = (self._kept + piece)[-_MOST_SHOWN:]

    def text(self) -> str:
        """Without control characters, and with a word about what was left out."""
        shown = "".join(letter for letter in self._kept if letter.isprintable() or letter in "\n\t").strip()
        left_out = self.written - len(self._kept)
        return f"[{left_out} characters before this are left out]\n{shown}" if left_out > 0 and shown else shown


def _readable(path: Path) -> str:
    """What a file says, without comment lines; empty for one that is not there."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_CHECKED_CHARS)
    except FileNotFoundError:
        return ""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "<!--"))]
    return "\n".join(lines).strip()
