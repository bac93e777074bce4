"""An SDK's clients, each with few connections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

__all__ = ["ClientLanes", "shared_tls"]

_CALLS_IN_A_LANE = 8


@cache
def shared_tls() -> "ssl.SSLContext":
    """Reading the certificates takes 20 ms, so it is done once for all clients."""
    import httpx2

    return httpx2.create_ssl_context()


class ClientLanes:
    """Clients of one service, opened as calls need them.

    The SDKs' connection pool looks at every connection it has, with a system call each, whenever a request begins or ends; with
    hundreds in one pool that costs more than the request. A lane is a client of its own that takes a few calls at a time.

    Args:
        open_client: imports the SDK and builds a client; called on a worker thread, for the first import takes a second.
    """

    def __init__(self, open_client: Callable[[], Any]) -> None:
        self._open_client = open_client
        self._lanes: list[_Lane] = []
        self._opening = asyncio.Lock()

    @property
    def opened(self) -> bool:
        """Whether the SDK could be imported and a client be built."""
        return bool(self._lanes)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        """A client for one call; the busiest lane that has room serves, so that a quiet host keeps to one."""
        lane = self._with_room() or await self._opened()
        try:
            yield lane.client
        finally:
            lane.calls -= 1

    async def close(self) -> None:
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            await lane.client.close()

    def _with_room(self) -> "_Lane | None":
        lane = next((lane for lane in self._lanes if lane.calls < _CALLS_IN_A_LANE), None)
        if lane is not None:
            lane.calls += 1
        return lane

    async def _opened(self) -> "_Lane":
        async with self._opening:
            if (lane := self._with_room()) is not None:
                return lane
            lane = _Lane(await asyncio.to_thread(self._open_client))
            self._lanes.append(lane)
            return lane


class _Lane:
    def __init__(self, client: Any) -> None:
        self.client = client
        self.calls = 1
