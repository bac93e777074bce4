"""Serves the application in the host's own loop."""

import asyncio
import contextlib
import errno
import logging
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from bot.http.app import build_app
from bot.http.auth import Credentials, private_file
from bot.http.guard import HostNames
from bot.http.host_view import HostView
from features.contracts.chat import WebhookChannel
from features.contracts.clock import Clock
from features.contracts.errors import OperatorMustAct

__all__ = ["HttpServer"]

_STOP_SECONDS = 1
log = logging.getLogger("pumice.http")


class HttpServer:
    """Listens while it is entered, and writes ``data_dir/http.url`` so that commands on this machine find it.

    Leaving ends every event stream first, so that no open page holds the host up: at most about a second.

    Args:
        host: an address of this machine; ``0.0.0.0`` or ``::`` for all.
        port: 0 takes any that is free; ``url`` tells which.
        public_url: the address under which a proxy offers this host, if one does.
        webhooks: the channels whose platforms call this host, by path.

    Raises:
        OperatorMustAct: on entering, when the port is taken or the address is not of this machine.
    """

    def __init__(
        self,
        view: HostView,
        *,
        token: str,
        data_dir: Path,
        clock: Clock,
        host: str = "127.0.0.1",
        port: int = 8765,
        public_url: str = "",
        webhooks: Mapping[str, WebhookChannel] | None = None,
    ) -> None:
        self._view = view
        self._webhooks = webhooks or {}
        self._host = host
        self._port = port
        self._clock = clock
        self._url_file = data_dir / "http.url"
        self._credentials = Credentials(token, clock)
        self._names = HostNames(host, public_url)
        self._stack = AsyncExitStack()
        self.url = ""

    def login_link(self) -> str:
        """A link that opens the page once, for the next ten minutes."""
        return f"{self.url}/#login={self._credentials.new_link()}"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            listener = stack.enter_context(_listen(self._host, self._port))
            port: int = listener.getsockname()[1]
            name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self._host, f"[{self._host}]" if ":" in self._host else self._host)  # noqa: S104
            self.url = f"http://{name}:{port}"
            identity = secrets.token_urlsafe(32)
            app = build_app(
                self._view, credentials=self._credentials, names=self._names, clock=self._clock, identity=identity, webhooks=self._webhooks
            )
            server = _Server(
                uvicorn.Config(
                    app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
                    date_header=False, proxy_headers=False, timeout_graceful_shutdown=_STOP_SECONDS, timeout_keep_alive=30,
                )
            )  # fmt: skip
            group = await stack.enter_async_context(asyncio.TaskGroup())
            keeping = group.create_task(self._view.events.run(), name="http events")
            stack.callback(keeping.cancel)
            group.create_task(server.serve([listener]), name="http server")
            stack.callback(server.stop)
            stack.callback(self._view.events.close)
            await server.ready.wait()
            self._write_url(identity)
            stack.callback(self._url_file.unlink, missing_ok=True)
            log.info("http listening", extra={"facts": {"url": self.url}})
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.__aexit__(None, None, None)

    def _write_url(self, identity: str) -> None:
        try:
            private_file(self._url_file, f"{self.url}\n{identity}\n", replace=True)
        except OSError as error:
            raise OperatorMustAct(f"{self._url_file} cannot be written: {error.strerror}. Make host.data_dir writable.") from None


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise OperatorMustAct(f"http.host is {host!r}, which is no address of this machine. Set it to 127.0.0.1.") from None
        if error.errno == errno.EADDRINUSE:
            raise OperatorMustAct(
                f"port {port} on {host} is in use. Set http.port to another one, or stop what listens there (another Pumice perhaps)."
            ) from None
        raise OperatorMustAct(f"cannot listen on {host} port {port}: {error.strerror}. Change http.host or http.port.") from None
    listener.setblocking(False)
    return listener


class _Server(uvicorn.Server):
    """uvicorn without signal handlers and without its ten wake-ups a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._stopped.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.ready.set()
        await self._stopped.wait()
