"""``pumice chat``: a conversation in the terminal, or one question and its answer."""

import asyncio
import os
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from features.contracts.errors import PumiceError

if TYPE_CHECKING:
    from bot.config import Config
    from bot.http.client import HostClient

__all__ = ["chat"]


@click.command()
@click.argument("message", required=False)
@click.option("--chat", "name", default="main", metavar="NAME", help="Which chat; each has its own session. Default: main.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Switch this chat to a model first.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR", help="The data directory.")
def chat(message: str | None, name: str, model: str | None, config_file: Path | None, data_dir: Path | None) -> None:
    """Chat in the terminal. With MESSAGE, or a text on standard input, print one answer."""
    from bot.config import load_config

    config = load_config(config_file, os.environ, Path.cwd())
    if data_dir is not None:
        config = config.with_data_dir(data_dir.absolute())
    interactive = message is None and sys.stdin.isatty() and sys.stdout.isatty()
    question = None if interactive else _question(message)
    sys.exit(asyncio.run(_chat(config, name, model, question)))


def _question(message: str | None) -> str:
    """What is asked; a text on standard input stands below the message."""
    piped = "" if sys.stdin.isatty() else sys.stdin.read()
    question = "\n\n".join(part for part in (message, piped.strip()) if part)
    if not question.strip():
        raise click.UsageError("nothing was said. Give a MESSAGE, or a text on standard input.")
    return question


async def _chat(config: "Config", name: str, model: str | None, question: str | None) -> int:
    from bot.cli.connection import HostedChat
    from channels.console import TerminalChat, one_answer
    from channels.console.said_files import said_files
    from features.contracts.chat import Address

    async with AsyncExitStack() as stack:
        client = await _client(config, stack)
        hosted = HostedChat(client, Address("console", name))
        if model is not None:
            await hosted.set_model(model)
        if question is None:
            await TerminalChat(hosted, history=config.host.data_dir / "console_history", folder=Path.cwd()).run()
            return 0
        answer = await one_answer(hosted, question, said_files(question, Path.cwd()))
        if answer.failed:
            raise PumiceError(answer.text or "the run failed. The host's log says why.")
        click.echo(answer.text)
        return 0


async def _client(config: "Config", stack: AsyncExitStack) -> "HostClient":
    """The host that runs on the data directory; where none does, one of our own for as long as we talk."""
    from bot.http.client import HostClient

    token = config.http.token or None
    found = await HostClient.find(config.host.data_dir, token=token)
    if found is None:
        await stack.enter_async_context(_own_host(config))
        found = await HostClient.connect(config.host.data_dir, token=token)
    return await stack.enter_async_context(found)


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
