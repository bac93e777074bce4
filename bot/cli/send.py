"""``pumice send``: deliver a text or files into a chat."""

import asyncio
from pathlib import Path

import click

from bot.cli.options import located, read_client_config
from bot.config import Config

__all__ = ["command"]


@click.command("send")
@located
@click.argument("chat")
@click.argument("text", required=False, default="")
@click.option("--file", "files", multiple=True, type=click.Path(path_type=Path), metavar="F", help="A file to send; may be given again.")
def command(config: Path | None, data_dir: Path | None, chat: str, text: str, files: tuple[Path, ...]) -> None:
    """Deliver TEXT into CHAT (like telegram:12345) through the running host."""
    if not text.strip() and not files:
        raise click.UsageError("nothing to send. Give a TEXT, or a --file")
    asyncio.run(_send(read_client_config(config, data_dir), chat, text, files))


async def _send(config: Config, chat: str, text: str, files: tuple[Path, ...]) -> None:
    from bot.cli.connection import HostedChat
    from bot.http.client import HostClient
    from features.contracts.chat import Address
    from features.contracts.errors import UserMustAct

    try:
        address = Address.parse(chat)
    except ValueError as error:
        raise UserMustAct(f"{error}.") from None
    async with await HostClient.connect(config.host.data_dir, token=config.http.token) as client:
        await HostedChat(client, address).send(text, files)
