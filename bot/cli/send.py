"""``pumice send``: deliver a text or files into a chat."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from features.contracts.errors import UserMustAct

if TYPE_CHECKING:
    from bot.config import Config

__all__ = ["send"]


@click.command()
@click.argument("chat")
@click.argument("text", required=False, default="")
@click.option("--file", "files", multiple=True, type=click.Path(path_type=Path), metavar="F", help="A file to send; may be given again.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR", help="The data directory.")
def send(chat: str, text: str, files: tuple[Path, ...], config_file: Path | None, data_dir: Path | None) -> None:
    """Deliver TEXT into CHAT (like telegram:12345) through the running host."""
    from bot.config import load_config

    if not text.strip() and not files:
        raise click.UsageError("nothing to send. Give a TEXT, or a --file.")
    config = load_config(config_file, os.environ, Path.cwd())
    if data_dir is not None:
        config = config.with_data_dir(data_dir.absolute())
    asyncio.run(_send(config, chat, text, files))


async def _send(config: "Config", chat: str, text: str, files: tuple[Path, ...]) -> None:
    from bot.cli.connection import HostedChat
    from bot.http.client import HostClient
    from features.contracts.chat import Address

    try:
        address = Address.parse(chat)
    except ValueError as error:
        raise UserMustAct(f"{error}.") from None
    async with await HostClient.connect(config.host.data_dir, token=config.http.token or None) as client:
        await HostedChat(client, address).send(text, files)
