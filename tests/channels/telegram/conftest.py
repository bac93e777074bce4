from collections.abc import AsyncIterator

import pytest

from channels.telegram import TelegramChannel
from tests.channels.telegram.rig import CHAT, GROUP, Sink, channel_of, running
from tests.servers.telegram import TelegramServer, User, serve_telegram


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with serve_telegram() as server:
        server.world.messages[CHAT], server.world.messages[GROUP] = {}, {}
        yield server


@pytest.fixture
async def sink() -> Sink:
    return Sink()


@pytest.fixture
async def channel(telegram: TelegramServer) -> TelegramChannel:
    """A channel that only sends."""
    return channel_of(telegram)


@pytest.fixture
async def listening(telegram: TelegramServer, sink: Sink) -> AsyncIterator[TelegramChannel]:
    async with running(channel_of(telegram), sink) as channel:
        await telegram.until(lambda: telegram.called("getUpdates"))
        yield channel


@pytest.fixture
def ann() -> User:
    return User(77, "Ann")
