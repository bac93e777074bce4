"""``pumice chat``: a conversation in the terminal, or one question and its answer."""

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import click

from bot.cli.options import located, read_client_config, read_config
from bot.config import Config

__all__ = ["command"]


@click.command("chat")
@located
@click.argument("message", required=False)
@click.option("--chat", "name", default="main", metavar="NAME", show_default=True, help="Which chat; each has its own session.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Switch this chat to a model first.")
def command(config: Path | None, data_dir: Path | None, message: str | None, name: str, model: str | None) -> None:
    """Chat in the terminal. With MESSAGE, or a text on standard input, print one answer."""
    from bot.cli.conversation import converse

    read = read_client_config(config, data_dir)
    interactive = message is None and sys.stdin.isatty() and sys.stdout.isatty()
    question = None if interactive else _question(message)
    asyncio.run(
        converse(
            read.host.data_dir,
            token=read.http.token,
            name=name,
            model=model,
            question=question,
            start_host=lambda: _own_host(read_config(config, data_dir)),
        )
    )


def _question(message: str | None) -> str:
    """What is asked; a text on standard input stands below the message."""
    piped = "" if sys.stdin.isatty() else sys.stdin.read()
    question = "\n\n".join(part for part in (message, piped.strip()) if part)
    if not question.strip():
        raise click.UsageError("nothing was said. Give a MESSAGE, or a text on standard input")
    return question


def _own_host(config: "Config") -> AbstractAsyncContextManager[object]:
    """A host with this terminal as its only channel, on a port that nobody else has."""
    import random

    import msgspec

    from bot.clock import SystemClock
    from bot.host import Host
    from bot.ids import new_id

    http = msgspec.structs.replace(config.http, host="127.0.0.1", port=0)
    config = msgspec.structs.replace(config, http=http)
    return Host(config, clock=SystemClock(), ids=new_id, random=random.SystemRandom(), channels={"console"})
