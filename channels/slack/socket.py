"""Socket Mode: one WebSocket that is opened anew whenever it ends, is refused or falls silent.

::

    apps.connections.open -> connect -> hello -> envelopes, each answered when it is stored
             ^                             | disconnect, closed, no sign of life
             +---------- wait -------------+
"""

import asyncio
import json
import logging
from random import Random
from typing import Any, NoReturn

import aiohttp

from channels.slack.api import Flooded, SlackApi, SlackRefusal, SlackUnreachable
from channels.slack.health import ConnectionHealth
from channels.slack.options import ConnectionPace
from channels.slack.receiver import Receiver
from channels.slack.refusals import TOKEN_CODES
from features.contracts.clock import Clock

__all__ = ["SocketConnection"]

_log = logging.getLogger("pumice.slack")
_AT_ONCE = 200
_MAX_MESSAGE_BYTES = 8 * 1024 * 1024
_TOKEN = "Slack does not accept channels.slack.app_token ({}). Make one with the scope connections:write."  # noqa: S105


class SocketConnection:
    """Keeps one connection for as long as it is run."""

    def __init__(
        self,
        api: SlackApi,
        receiver: Receiver,
        *,
        health: ConnectionHealth,
        clock: Clock,
        random: Random,
        pace: ConnectionPace,
    ) -> None:
        self._api = api
        self._receiver = receiver
        self._health = health
        self._clock = clock
        self._random = random
        self._pace = pace
        self._failures = 0
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> NoReturn:
        while True:
            try:
                url = await self._api.socket_url()
                if not await self._serve(url):
                    self._health.lost("The connection to Slack ended. Connecting again.")
                    await self._clock.sleep(self._delay())
            except SlackRefusal as error:
                await self._clock.sleep(self._refused(error))
            except (SlackUnreachable, aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                reason = str(error) if isinstance(error, SlackUnreachable) else type(error).__name__
                self._health.lost(f"No connection to Slack ({reason}). Trying again.")
                await self._clock.sleep(self._delay())

    async def _serve(self, url: str) -> bool:
        """One connection, until it ends. True where Slack announced the end, so that the next connection follows at once."""
        timeout = aiohttp.ClientWSTimeout(ws_close=5.0)
        async with (
            self._api.session.ws_connect(url, heartbeat=self._pace.ping_s, timeout=timeout, max_msg_size=_MAX_MESSAGE_BYTES) as socket,
            asyncio.TaskGroup() as answers,
        ):
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    continue
                envelope = _read(message.data)
                match envelope.get("type"):
                    case "hello":
                        self._failures = 0
                        self._health.working()
                    case "disconnect":
                        _log.info("slack asked for a new connection", extra={"facts": {"reason": envelope.get("reason")}})
                        return True
                    case _ if envelope.get("envelope_id"):
                        await self._room.acquire()
                        answers.create_task(self._answer(socket, envelope)).add_done_callback(lambda _: self._room.release())
        return False

    async def _answer(self, socket: aiohttp.ClientWebSocketResponse, envelope: dict[str, Any]) -> None:
        """What is not answered comes again."""
        response = await self._receiver.over_socket(envelope.get("payload") or {}, _retry_headers(envelope))
        if response.status != 200:
            return
        try:
            await socket.send_str(json.dumps({"envelope_id": envelope["envelope_id"]}))
        except (aiohttp.ClientError, ConnectionError):
            _log.info("slack hears of an event later: the connection ended")

    def _refused(self, error: SlackRefusal) -> float:
        """Say what is wrong; gives the seconds to wait."""
        if isinstance(error, Flooded):
            self._health.lost(f"Slack asked for a pause of {error.seconds:g} s before the next connection.")
            return error.seconds
        if error.code in TOKEN_CODES or error.code == "missing_scope":
            self._health.lost(_TOKEN.format(error.code))
            return self._pace.retry_max_s
        self._health.lost(f"Slack refused the connection ({error.code}). Trying again.")
        return self._delay()

    def _delay(self) -> float:
        self._failures += 1
        longest: float = min(self._pace.retry_max_s, self._pace.retry_s * 2 ** min(self._failures - 1, 16))
        return longest * (0.5 + self._random.random() / 2)


def _read(data: str) -> dict[str, Any]:
    try:
        envelope = json.loads(data)
    except ValueError:
        return {}
    return envelope if isinstance(envelope, dict) else {}


def _retry_headers(envelope: dict[str, Any]) -> dict[str, str]:
    attempt = envelope.get("retry_attempt")
    return {"x-slack-retry-num": str(attempt), "x-slack-retry-reason": str(envelope.get("retry_reason", ""))} if attempt else {}
