"""A real server over a host in memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from bot.clock import SystemClock
from bot.http.auth import load_or_create_token
from bot.http.server import HttpServer
from bot.http.testing import MemoryHost


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def host(tmp_path: Path) -> MemoryHost:
    return MemoryHost(SystemClock(), tmp_path)


@pytest.fixture
async def server(host: MemoryHost, data_dir: Path) -> AsyncIterator[HttpServer]:
    token = load_or_create_token(data_dir, None)
    async with HttpServer(host, token=token, data_dir=data_dir, clock=host.clock, port=0) as running:
        yield running


@pytest.fixture
def token(data_dir: Path) -> str:
    return load_or_create_token(data_dir, None)


@pytest.fixture
async def stranger(server: HttpServer) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that has no token."""
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        yield client


@pytest.fixture
async def owner(server: HttpServer, token: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that has the token."""
    async with httpx2.AsyncClient(base_url=server.url, headers={"authorization": f"Bearer {token}"}, trust_env=False) as client:
        yield client
