"""A whole host in this process."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from bot.clock import SystemClock
from bot.config import Config, load_config
from bot.host import Host
from bot.http.client import HostClient
from bot.ids import new_id
from features.contracts.chat import ChatChannel
from tests.servers.anthropic import AnthropicServer
from tests.servers.telegram import TOKEN, TelegramServer

__all__ = ["configured", "running", "with_anthropic", "with_telegram"]

WANTS = {"PUMICE_HTTP__PORT": "0", "PUMICE_PROCESSES__HARDEN": "false"}


def configured(folder: Path, text: str = "", **environ: str) -> Config:
    """A configuration of ``text``, with the data in ``folder``."""
    (folder / "pumice.toml").write_text(text)
    return load_config(folder / "pumice.toml", {"HOME": str(folder), **WANTS, **environ}, folder)


def with_telegram(server: TelegramServer, *, more: str = "") -> str:
    return f'''
[access]
owners = ["telegram:1001"]
allow = ["telegram:1002"]
[channels.telegram]
token = "{TOKEN}"
api_url = "{server.url}"
max_sends_per_second = 0
{more}
'''


def with_anthropic(server: AnthropicServer) -> str:
    return f'''
[models]
default = "anthropic/claude-sonnet-5-5"
[providers.anthropic]
api_key = "{server.api_key}"
base_url = "{server.url}"
'''


@asynccontextmanager
async def running(
    config: Config, *, channels: Iterable[str | ChatChannel] | None = None, ids: Callable[[], str] = new_id
) -> AsyncIterator[tuple[Host, HostClient]]:
    """The host, and a client of its API."""
    async with (
        Host(config, clock=SystemClock(), ids=ids, random=Random(1), channels=channels) as host,
        await HostClient.connect(config.host.data_dir) as client,
    ):
        yield host, client
