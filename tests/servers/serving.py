"""Serving an ASGI application on a loopback port, inside a test or as a process of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

__all__ = ["run", "serve"]


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the test runner."""
        yield


def _config(app: ASGIApp, **options: Any) -> uvicorn.Config:
    return uvicorn.Config(app, lifespan="off", log_config=None, log_level="critical", access_log=False, **options)


@asynccontextmanager
async def serve(app: ASGIApp) -> AsyncIterator[str]:
    """Serve ``app`` in this loop; gives its address, like ``http://127.0.0.1:40123``. Connections still open at the end are cut."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    server = _Server(_config(app, timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        await task
        listener.close()


def run(app: ASGIApp, port: int) -> None:
    """Serve ``app`` until the process is stopped."""
    uvicorn.Server(_config(app, host="127.0.0.1", port=port, backlog=4096)).run()
