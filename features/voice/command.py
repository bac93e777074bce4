"""A command that is given a recording and writes what it hears."""

import asyncio
from pathlib import Path

import msgspec

from features.contracts.errors import ModelMustAct, UserMustAct
from features.contracts.processes import ProcessRunner, ProcessSpawnRequest, RunningProcess

__all__ = ["CommandOptions", "CommandTranscriber"]

_TIMEOUT_S = 120.0
_MAX_CHARS = 100_000
_MAX_REASON = 200


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The recording's path is added at the end, or stands where an argument is ``{file}``."""

    command: tuple[str, ...]


class CommandTranscriber:
    """Implements ``Transcriber``. The command goes through the spawn policy like everything that is started for a chat."""

    def __init__(self, options: CommandOptions, processes: ProcessRunner) -> None:
        self._options = options
        self._processes = processes

    async def transcribe(self, recording: Path, *, workspace: Path, owner: bool) -> str:
        given = self._options.command
        argv = tuple(str(recording) if part == "{file}" else part for part in given)
        if "{file}" not in given:
            argv += (str(recording),)
        request = ProcessSpawnRequest(argv=argv, cwd=workspace, purpose="voice", workspace=workspace, owner=owner)
        try:
            async with asyncio.timeout(_TIMEOUT_S), self._processes.start(request) as process:
                output = await _output(process)
                status = await process.wait()
        except TimeoutError:
            raise UserMustAct(f"The transcription command took more than {_TIMEOUT_S:g} s and was stopped.") from None
        except ModelMustAct as error:
            raise UserMustAct(f"The transcription command cannot be started: {error}") from None
        if status != 0:
            raise UserMustAct(f"The transcription command failed with status {status}: {output.strip()[-_MAX_REASON:]}")
        return output.strip()


async def _output(process: RunningProcess) -> str:
    """What it writes; what is beyond the cap is read and dropped."""
    pieces: list[str] = []
    room = _MAX_CHARS
    async for piece in process.output():
        pieces.append(piece[:room])
        room -= len(pieces[-1])
    return "".join(pieces)
