"""A conversation in a terminal."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from channels.console.connection import ConsoleConnection
from channels.console.file_mentions import said_files
from channels.console.transcript import Transcript
from features.contracts.chat import ChatCommand
from features.contracts.errors import UserMustAct

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output
    from rich.console import Console

__all__ = ["TerminalChat"]

_WELCOME = "Type a message, or / for commands. Ctrl-C stops the run, Ctrl-D leaves. @file attaches a file."


class TerminalChat:
    """Reads lines with history and completion, and prints answers above them while they come.

    Args:
        history: file that keeps what was typed; None keeps nothing.
        input, output: the terminal; None takes the process's own.
        make_console: makes what answers are printed on, once the prompt owns the terminal.
    """

    def __init__(
        self,
        connection: ConsoleConnection,
        *,
        history: Path | None,
        folder: Path,
        input: "Input | None" = None,
        output: "Output | None" = None,
        make_console: "Callable[[], Console] | None" = None,
    ) -> None:
        self._connection = connection
        self._history = history
        self._folder = folder
        self._input = input
        self._output = output
        self._make_console = make_console or _terminal_console

    async def run(self) -> None:
        """Talk until the person leaves."""
        from prompt_toolkit.patch_stdout import patch_stdout

        prompt = self._prompt(await self._connection.commands())
        with patch_stdout(raw=True):
            console = self._make_console()
            transcript = Transcript(console, changed=prompt.app.invalidate)
            console.print(_WELCOME, style="dim")
            prompt.bottom_toolbar = lambda: transcript.status or None
            listening = asyncio.create_task(self._listen(transcript), name="console events")
            reading = asyncio.create_task(self._read(prompt, transcript), name="console input")
            try:
                await asyncio.wait({listening, reading}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (listening, reading):
                    task.cancel()
                ends = await asyncio.gather(listening, reading, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _listen(self, transcript: Transcript) -> None:
        async with aclosing(self._connection.events()) as events:
            async for event in events:
                if event.name in ("connected", "resync") and transcript.was_connected:
                    transcript.catch_up(await self._connection.messages())
                transcript.take(event)

    async def _read(self, prompt: "PromptSession[str]", transcript: Transcript) -> None:
        while True:
            try:
                text = (await prompt.prompt_async("› ")).strip()
            except KeyboardInterrupt:
                await self._interrupt(transcript)
                continue
            except EOFError:
                return
            if not text:
                continue
            try:
                transcript.posted(await self._connection.post(text, said_files(text, self._folder)))
            except UserMustAct as refusal:
                transcript.note(str(refusal))

    async def _interrupt(self, transcript: Transcript) -> None:
        if transcript.running:
            transcript.posted(await self._connection.post("/stop"))
        else:
            transcript.note("Nothing is running. Ctrl-D leaves.")

    def _prompt(self, commands: Sequence[ChatCommand]) -> "PromptSession[str]":
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        return PromptSession(
            history=FileHistory(str(self._history)) if self._history else InMemoryHistory(),
            completer=_command_completer(commands),
            complete_while_typing=True,
            input=self._input,
            output=self._output,
        )


def _command_completer(commands: Sequence[ChatCommand]) -> "Completer":
    from prompt_toolkit.completion import WordCompleter

    return WordCompleter(
        [f"/{command.name}" for command in commands],
        meta_dict={f"/{command.name}": command.description for command in commands},
        sentence=True,  # only a message that begins with a slash is a command
    )


def _terminal_console() -> "Console":
    from rich.console import Console

    return Console(file=sys.stdout, force_terminal=True)
