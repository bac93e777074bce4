"""Connections that go to an address which was looked at, and to no other."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

import httpcore2

from features.contracts.errors import ModelMustAct
from features.tools.web.public_addresses import IpAddress, Refusal, Resolver

__all__ = ["GuardedNetwork", "resolve"]

_MOST_TRIED = 4
_TRY_S = 5.0


async def resolve(host: str, port: int) -> list[str]:
    """Ask the machine's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """What a connection pool connects through: a name is resolved once for each connection, every address of the answer must be permitted,
    and the connection is made to one of those addresses. TLS still asks for the name, because the pool knows nothing of this.
    """

    def __init__(self, resolver: Resolver, refusal: Refusal) -> None:
        self._resolve = resolver
        self._refusal = refusal
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """
        Raises:
            ModelMustAct: the host is not to be found, or not in the public internet.
        """
        problem: Exception | None = None
        for address in (await self._permitted(host, port))[:_MOST_TRIED]:
            try:
                within = _TRY_S if timeout is None else min(timeout, _TRY_S)
                return await self._network.connect_tcp(str(address), port, within, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem if problem is not None else httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None) -> Any:
        raise ModelMustAct(f"{path} is a socket of this machine, which web_fetch does not reach")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _permitted(self, host: str, port: int) -> list[IpAddress]:
        try:
            answer = await self._resolve(host, port)
            addresses = [ip_address(text.partition("%")[0]) for text in answer]
        except (OSError, ValueError):  # a UnicodeError of the name is a ValueError
            raise ModelMustAct(f"no host {host!r} can be found; check the address") from None
        for address in addresses:
            if (what := self._refusal(address)) is not None:
                raise ModelMustAct(f"{host} is at {address}, which is {what}; web_fetch reaches the public internet only")
        return addresses
