"""The Slack channel as the host sees it."""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from channels.slack.health import ConnectionHealth
from channels.slack.options import SlackOptions
from channels.slack.rate_gate import RateGate
from features.contracts.chat import (
    Address,
    Attachment,
    ChannelHealth,
    ChatCommand,
    DeliveryProgress,
    InboundMessage,
    InboundSink,
    LiveView,
    OutboundMessage,
    Overheard,
    WebhookAnswer,
)
from features.contracts.clock import Clock

if TYPE_CHECKING:
    from channels.slack.connection import Connection
    from channels.slack.live_view import Recipient

__all__ = ["SlackChannel"]

_log = logging.getLogger("pumice.slack")
_KEPT_SENDERS = 2000
_UNAVAILABLE = WebhookAnswer(status=503, body="not ready; send it again")


class SlackChannel:
    """Implements ``ChatChannel``, ``ThreadReader`` and ``WebhookChannel``. Nothing is connected, no SDK imported, before it is first used.

    The connection ends with ``run``, or with the last that is sent after it, as a host does that empties its outbox.
    """

    name = "slack"

    def __init__(self, options: SlackOptions, *, clock: Clock, random: Random) -> None:
        self._options = options
        self._clock = clock
        self._random = random
        self._gate = RateGate(clock, paced=options.paced)
        self._health = ConnectionHealth(clock)
        self._commands: tuple[str, ...] = ()
        self._senders: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._connection: Connection | None = None
        self._users = 0

    @property
    def webhook_path(self) -> str | None:
        return "/slack/events" if self._options.mode == "http" else None

    async def run(self, sink: InboundSink) -> None:
        async with self._connected() as connection:
            try:
                await connection.run(sink, health=self._health, commands=lambda: self._commands, stored=self._remember)
            finally:
                self._health.stopped()

    async def send(self, address: Address, message: OutboundMessage, progress: DeliveryProgress) -> None:
        from channels.slack.delivery import Delivery
        from channels.slack.target import Target

        async with self._connected() as connection:
            target = Target(address, message.reply_to)
            await Delivery(connection.api, self._gate, connection.drafts, target=target, message=message, progress=progress).run()

    def live(self, address: Address, *, reply_to: str | None, opened: Callable[[str], None]) -> LiveView:
        from channels.slack.live_view import SlackLiveView
        from channels.slack.target import Target

        connection, target = self._connect(), Target(address, reply_to)
        return SlackLiveView(
            connection.api,
            self._gate,
            connection.drafts,
            target,
            recipient=self._recipient(address, reply_to),
            opened=opened,
            clock=self._clock,
            error_ids=self._error_id,
        )

    async def close_buttons(self, address: Address, ref: str | None, text: str) -> bool:
        from channels.slack.button_closing import close_buttons
        from channels.slack.target import Target

        async with self._connected() as connection:
            return ref is not None and await close_buttons(connection.api, self._gate, self._clock, Target(address, None), ref, text)

    async def fetch(self, attachment: Attachment, destination: Path, *, limit: int) -> None:
        from channels.slack.downloads import download

        async with self._connected() as connection:
            options = self._options
            await download(connection.api, attachment, destination, limit=limit, token=options.bot_token, api_url=options.api_url)

    async def earlier(self, address: Address, *, before: str, after: str | None, limit: int) -> Sequence[Overheard]:
        connection = self._connection
        return [] if connection is None else await connection.earlier(self._gate, address, before=before, after=after, limit=limit)

    async def announce_commands(self, commands: Sequence[ChatCommand]) -> None:
        """Slack has no menu; the names tell a command from a sentence behind ``/pumice``."""
        self._commands = tuple(command.name for command in commands)

    async def webhook(self, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer:
        connection = self._connection
        return _UNAVAILABLE if connection is None else await connection.over_http(body, headers)

    def health(self) -> ChannelHealth:
        return self._health.now

    def _connect(self) -> "Connection":
        if self._connection is None:
            from channels.slack.connection import Connection

            self._connection = Connection(self._options, clock=self._clock, random=self._random, error_ids=self._error_id)
        return self._connection

    @contextlib.asynccontextmanager
    async def _connected(self) -> "AsyncIterator[Connection]":
        connection = self._connect()
        self._users += 1
        try:
            yield connection
        finally:
            self._users -= 1
            if not self._users:
                self._connection = None
                await asyncio.shield(connection.close())

    def _remember(self, message: InboundMessage) -> None:
        """Who said what: a stream is addressed to somebody."""
        if message.ref is None or message.kind != "message":
            return
        channel = message.address.chat.partition("/")[2]
        self._senders[channel, message.ref] = message.sender.id
        if len(self._senders) > _KEPT_SENDERS:
            self._senders.popitem(last=False)

    def _recipient(self, address: Address, reply_to: str | None) -> "Recipient | None":
        from channels.slack.live_view import Recipient

        sender = self._senders.get((address.chat.partition("/")[2], reply_to or ""))
        if sender is None:
            return None
        team, _, user = sender.removeprefix("slack:").partition("/")
        return Recipient(team, user)

    def _error_id(self) -> str:
        return f"{self._random.getrandbits(32):08x}"
