"""Everything that talks to one workspace, from the first auth.test to the last message."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from random import Random

from channels.slack.api import Flooded, Me, SlackApi, SlackRefusal, SlackUnreachable
from channels.slack.drafts import Drafts
from channels.slack.health import ConnectionHealth
from channels.slack.intake import Intake
from channels.slack.manifest import REQUIRED_SCOPES
from channels.slack.options import SlackOptions
from channels.slack.people import People
from channels.slack.rate_gate import RateGate
from channels.slack.receiver import Receiver
from channels.slack.refusals import TOKEN_CODES
from channels.slack.socket import SocketConnection
from channels.slack.threads import earlier_messages
from features.contracts.chat import Address, InboundMessage, InboundSink, Overheard, WebhookAnswer
from features.contracts.clock import Clock

__all__ = ["Connection"]

_log = logging.getLogger("pumice.slack")
_TOKEN = "Slack does not accept channels.slack.bot_token ({}). Copy it from the app's page, OAuth & Permissions."  # noqa: S105


class Connection:
    def __init__(self, options: SlackOptions, *, clock: Clock, random: Random, error_ids: Callable[[], str]) -> None:
        self.api = SlackApi(options)
        self.drafts = Drafts()
        self._options = options
        self._clock = clock
        self._random = random
        self._error_ids = error_ids
        self._people = People(self.api, clock)
        self._me: Me | None = None
        self._receiver: Receiver | None = None

    async def run(
        self,
        sink: InboundSink,
        *,
        health: ConnectionHealth,
        commands: Callable[[], Iterable[str]],
        stored: Callable[[InboundMessage], None],
    ) -> None:
        """Serve until cancelled."""
        health.starting()
        self._me = me = await self._introduce(health)
        intake = Intake(sink, self._people, stored=stored)
        receiver = Receiver(
            self._options,
            self.api,
            me,
            intake,
            clock=self._clock,
            commands=commands,
            heard=health.heard,
            error_ids=self._error_ids,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(intake.run(), name="slack intake")
            if self._options.mode == "socket":
                socket = SocketConnection(
                    self.api, receiver, health=health, clock=self._clock, random=self._random, pace=self._options.pace
                )
                tasks.create_task(socket.run(), name="slack socket")
            else:
                self._receiver = receiver
                health.working()

    async def close(self) -> None:
        await self._people.close()
        await self.api.close()

    async def over_http(self, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer:
        if self._receiver is None:
            return WebhookAnswer(status=503, body="not ready; send it again")
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return WebhookAnswer(status=400, body="the body is no UTF-8")
        response = await self._receiver.over_http(text, headers)
        kind = response.headers.get("content-type", ["text/plain"])[0]
        return WebhookAnswer(status=response.status, body=response.body or "", content_type=kind)

    async def earlier(self, gate: RateGate, address: Address, *, before: str, after: str | None, limit: int) -> list[Overheard]:
        if self._me is None:
            return []
        return await earlier_messages(self.api, gate, self._people, self._me, address, before=before, after=after, limit=limit)

    async def _introduce(self, health: ConnectionHealth) -> Me:
        """Who this bot is; asked until Slack tells."""
        failures = 0
        pace = self._options.pace
        while True:
            try:
                me = await self.api.me()
            except SlackRefusal as error:
                failures += 1
                if isinstance(error, Flooded):
                    health.lost(f"Slack asked for a pause of {error.seconds:g} s.")
                    wait = error.seconds
                elif error.code in TOKEN_CODES:
                    health.lost(_TOKEN.format(error.code))
                    wait = pace.retry_max_s
                else:
                    health.lost(f"Slack refused the first call ({error.code}). Trying again.")
                    wait = min(pace.retry_max_s, pace.retry_s * 2 ** min(failures - 1, 16))
            except SlackUnreachable as error:
                failures += 1
                health.lost(f"No connection to Slack ({error}). Trying again.")
                wait = min(pace.retry_max_s, pace.retry_s * 2 ** min(failures - 1, 16))
            else:
                if missing := sorted(set(REQUIRED_SCOPES) - me.scopes) if me.scopes else []:
                    _log.warning("slack scopes missing", extra={"facts": {"scopes": ", ".join(missing)}})
                return me
            await self._clock.sleep(wait * (0.75 + self._random.random() / 4))
