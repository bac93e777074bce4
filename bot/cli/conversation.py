"""Talking in the terminal through a host."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import click

from bot.cli.connection import HostedChat
from bot.http.client import HostClient
from channels.console import TerminalChat, one_answer, said_files
from features.contracts.chat import Address
from features.contracts.errors import PumiceError

__all__ = ["converse"]


async def converse(
    data_dir: Path,
    *,
    token: str | None,
    name: str,
    model: str | None,
    question: str | None,
    start_host: Callable[[], AbstractAsyncContextManager[object]],
    history: Path | None = None,
) -> None:
    """Talk with the host that runs on the data directory; where none does, with one of our own for as long as we talk.

    Args:
        question: what to print one answer to; None opens a conversation.
        history: the file of what was typed in earlier conversations, in the data directory unless said.

    Raises:
        PumiceError: the run failed.
    """
    async with AsyncExitStack() as stack:
        client = await HostClient.find(data_dir, token=token)
        if client is None:
            await stack.enter_async_context(start_host())
            client = await HostClient.connect(data_dir, token=token)
        hosted = HostedChat(await stack.enter_async_context(client), Address("console", name), attended=question is None)
        if model is not None:
            await hosted.set_model(model)
        if question is None:
            await TerminalChat(hosted, history=history or data_dir / "console_history", folder=Path.cwd()).run()
            return
        answer = await one_answer(hosted, question, said_files(question, Path.cwd()))
        if answer.failed:
            raise PumiceError(answer.text or "the run failed. The host's log says why.")
        click.echo(answer.text)
