"""Connections to the Bot API, in small pools.

httpcore walks all connections of a pool on every request, the idle ones once more for each; at 64 connections that
doubles the cost of a call. So the connections are spread over lanes of a few, and the first lane with room is taken.
A lane whose requests fail again and again is replaced: a pool can keep a dead connection for ever.
"""

import asyncio
import json
import logging
import ssl
from typing import Any

import httpx
from telegram.error import BadRequest, TelegramError
from telegram.request import BaseRequest, HTTPXRequest, RequestData

__all__ = ["Flooded", "LanedRequest", "tls_context"]

_log = logging.getLogger("pumice.telegram")
_LANE_CONNECTIONS = 4
_FAILURES_BEFORE_RENEWAL = 3
_DEFAULT = BaseRequest.DEFAULT_NONE
_Seconds = Any  # a number, None or the library's own sign for "as set up"


class Flooded(TelegramError):
    """Telegram asked for a pause of ``seconds``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many requests; wait {seconds:g} s")
        self.seconds = seconds


def tls_context() -> ssl.SSLContext:
    """Reading the certificates takes 20 ms, so it is done once for all lanes."""
    return httpx.create_ssl_context()


class _Lane:
    def __init__(self, request: HTTPXRequest) -> None:
        self.request = request
        self.load = 0
        self.failures = 0
        self.retired = False


class LanedRequest(BaseRequest):
    """Implements python-telegram-bot's transport.

    Args:
        lanes: pools at most; each has a few connections, made when first needed.
        read_timeout: seconds of silence after a request.
    """

    def __init__(self, tls: ssl.SSLContext, *, lanes: int, read_timeout: float) -> None:
        self._tls = tls
        self._max_lanes = lanes
        self._read_timeout = read_timeout
        self._lanes: list[_Lane] = []
        self._room = asyncio.Semaphore(lanes * _LANE_CONNECTIONS)
        self._abandoned: set[asyncio.Task[tuple[int, bytes]]] = set()
        self._open = False

    @property
    def read_timeout(self) -> float | None:
        return self._read_timeout

    async def initialize(self) -> None:
        self._open = True

    async def shutdown(self) -> None:
        """Close what is idle now, and the rest when its requests end; what is asked later opens and closes its own connection."""
        self._open = False
        for exchange in (abandoned := list(self._abandoned)):
            exchange.cancel()
        await asyncio.gather(*abandoned, return_exceptions=True)
        await self.renew()

    async def renew(self) -> None:
        """Begin with fresh connections; requests that are going on keep theirs."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.retired = True
            if not lane.load:
                await lane.request.shutdown()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: _Seconds = _DEFAULT,
        write_timeout: _Seconds = _DEFAULT,
        connect_timeout: _Seconds = _DEFAULT,
        pool_timeout: _Seconds = _DEFAULT,
    ) -> tuple[int, bytes]:
        """A caller that is cancelled leaves its exchange to end by itself: cut off, it would leave the pool a connection short for ever."""
        async with self._room:
            timeouts = (read_timeout, write_timeout, connect_timeout, pool_timeout)
            lane = self._lane()
            lane.load += 1
            exchange = asyncio.ensure_future(self._exchange(lane, url, method, request_data, *timeouts))
            try:
                code, payload = await asyncio.shield(exchange)
            except asyncio.CancelledError:
                if not exchange.done():
                    self._abandoned.add(exchange)
                    exchange.add_done_callback(self._forget)
                raise
        if code == 429:
            raise Flooded(_retry_after(payload))
        if code == 413:
            raise BadRequest("Request entity too large")
        return code, payload

    async def _exchange(self, lane: _Lane, url: str, method: str, *arguments: Any) -> tuple[int, bytes]:
        try:
            answer = await lane.request.do_request(url, method, *arguments)
            lane.failures = 0
        except TelegramError:
            self._failed(lane)
            raise
        finally:
            lane.load -= 1
            if not self._open:
                self._retire(lane)
            if lane.retired and not lane.load:
                await lane.request.shutdown()
        return answer

    def _forget(self, exchange: "asyncio.Task[tuple[int, bytes]]") -> None:
        self._abandoned.discard(exchange)
        if not exchange.cancelled():
            exchange.exception()  # nobody waits for it any more

    def _lane(self) -> _Lane:
        for lane in self._lanes:
            if lane.load < _LANE_CONNECTIONS:
                return lane
        if len(self._lanes) < self._max_lanes:
            request = HTTPXRequest(
                connection_pool_size=_LANE_CONNECTIONS,
                read_timeout=self._read_timeout,
                write_timeout=10.0,
                connect_timeout=10.0,
                pool_timeout=30.0,
                httpx_kwargs={"verify": self._tls},
            )
            self._lanes.append(_Lane(request))
            return self._lanes[-1]
        return min(self._lanes, key=lambda lane: lane.load)  # what is abandoned may still take room

    def _failed(self, lane: _Lane) -> None:
        lane.failures += 1
        if lane.failures >= _FAILURES_BEFORE_RENEWAL and not lane.retired:
            _log.info("telegram connections renewed", extra={"facts": {"failures": lane.failures}})
            self._retire(lane)

    def _retire(self, lane: _Lane) -> None:
        lane.retired = True
        if lane in self._lanes:
            self._lanes.remove(lane)


def _retry_after(payload: bytes) -> float:
    try:
        answer: Any = json.loads(payload)
        return max(1.0, float(answer["parameters"]["retry_after"]))
    except (ValueError, KeyError, TypeError):
        return 5.0
