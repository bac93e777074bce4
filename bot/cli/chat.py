"""``pumice chat``: a conversation in the terminal, or one question and its answer."""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.cli.options import located, read_client_config, read_config
from bot.config import Config

if TYPE_CHECKING:
    from bot.session_file import SessionFileHost

__all__ = ["command"]


@click.command("chat")
@located
@click.argument("message", required=False)
@click.option("--chat", "name", default="main", metavar="NAME", show_default=True, help="Which chat; each has its own session.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Switch this chat to a model first.")
@click.option("--session", "session", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Work on this session file.")
def command(config: Path | None, data_dir: Path | None, message: str | None, name: str, model: str | None, session: Path | None) -> None:
    """Chat in the terminal. With MESSAGE, or a text on standard input, print one answer.

    With --session the conversation is the one in FILE, which pi reads and writes too; it is made where it is not there.
    """
    read = read_client_config(config, data_dir)
    interactive = message is None and sys.stdin.isatty() and sys.stdout.isatty()
    question = None if interactive else _question(message)

    async def talk(state_dir: Path, start_host: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        from bot.cli.conversation import converse

        history = read.host.data_dir / "console_history"
        await converse(state_dir, history=history, token=read.http.token, name=name, model=model, question=question, start_host=start_host)

    if session is None:
        asyncio.run(talk(read.host.data_dir, lambda: _own_host(read_config(config, data_dir))))
        return
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        state_dir, file = Path(folder), session
        asyncio.run(talk(state_dir, lambda: _own_host(read_config(config, data_dir), _on_file(file, name, state_dir))))


def _question(message: str | None) -> str:
    """What is asked; a text on standard input stands below the message."""
    piped = "" if sys.stdin.isatty() else sys.stdin.read()
    question = "\n\n".join(part for part in (message, piped.strip()) if part)
    if not question.strip():
        raise click.UsageError("nothing was said. Give a MESSAGE, or a text on standard input")
    return question


def _on_file(path: Path, name: str, state_dir: Path) -> "SessionFileHost":
    from bot.session_file import SessionFileHost
    from features.contracts.chat import Address

    return SessionFileHost(
        path=path,
        scope=str(Address("console", name)),
        state_dir=state_dir,
        warn=lambda text: click.echo(f"pumice: warning: {text}", err=True),
    )


def _own_host(config: "Config", session_file: "SessionFileHost | None" = None) -> AbstractAsyncContextManager[object]:
    """A host with this terminal as its only channel, on a port that nobody else has."""
    import random

    import msgspec

    from bot.clock import SystemClock
    from bot.host import Host
    from bot.ids import new_id

    http = msgspec.structs.replace(config.http, host="127.0.0.1", port=0)
    config = msgspec.structs.replace(config, http=http)
    return Host(config, clock=SystemClock(), ids=new_id, random=random.SystemRandom(), channels={"console"}, session_file=session_file)
