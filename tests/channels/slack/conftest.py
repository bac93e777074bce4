from collections.abc import AsyncIterator

import pytest

from channels.slack import SlackChannel
from tests.channels.slack.rig import Sink, channel_of, running
from tests.servers.slack import SlackServer, serve_slack


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with serve_slack() as server:
        yield server


@pytest.fixture
async def sink() -> Sink:
    return Sink()


@pytest.fixture
async def channel(slack: SlackServer) -> SlackChannel:
    """A channel that only sends."""
    return channel_of(slack)


@pytest.fixture
async def listening(slack: SlackServer, sink: Sink) -> AsyncIterator[SlackChannel]:
    async with running(channel_of(slack), sink) as channel:
        await slack.until(lambda: slack.connections)
        yield channel
