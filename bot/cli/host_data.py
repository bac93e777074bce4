"""The host's data: through the host that runs, else from the data directory itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.config import Config
from bot.lock import DataDirectoryLock, running_host

if TYPE_CHECKING:
    from bot.access import Access
    from bot.http.client import HostClient
    from features.storage import Database

__all__ = ["nothing_stored", "open_access", "open_database", "running_client"]


@asynccontextmanager
async def running_client(config: Config) -> "AsyncIterator[HostClient | None]":
    """The running host, None where none runs."""
    if running_host(config.host.data_dir) is None:
        yield None
        return
    from bot.http.client import HostClient

    async with await HostClient.connect(config.host.data_dir, token=config.http.token) as client:
        yield client


@asynccontextmanager
async def open_database(config: Config) -> "AsyncIterator[Database]":
    """The database, held against a host that starts meanwhile."""
    from bot.migrations import all_migrations
    from features.storage import Database

    with DataDirectoryLock(config.host.data_dir):
        async with Database(config.database_path, all_migrations()) as database:
            yield database


@asynccontextmanager
async def open_access(config: Config) -> "AsyncIterator[Access]":
    from random import SystemRandom

    from bot.access import Access
    from bot.clock import SystemClock

    async with open_database(config) as database:
        access = Access(config.access, database, SystemClock(), SystemRandom())
        await access.load()
        yield access


def nothing_stored(config: Config) -> bool:
    """No host ever ran here; looking must not make its files."""
    return not config.database_path.exists()
