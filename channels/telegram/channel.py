"""The Telegram channel as the host sees it."""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from channels.telegram.flood_gate import FloodGate
from channels.telegram.health import ConnectionHealth
from channels.telegram.options import TelegramOptions
from features.contracts.chat import (
    Address,
    Attachment,
    ChannelHealth,
    ChatCommand,
    DeliveryProgress,
    InboundSink,
    LiveView,
    OutboundMessage,
    WebhookAnswer,
)
from features.contracts.clock import Clock

if TYPE_CHECKING:
    from channels.telegram.api import TelegramApi
    from channels.telegram.buttons import ButtonCodec
    from channels.telegram.previews import DraftSupport
    from channels.telegram.webhook import UpdateHook

__all__ = ["TelegramChannel"]

_log = logging.getLogger("pumice.telegram")
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_MAX_COMMANDS = 100
_MAX_DESCRIPTION = 256
_MAX_CHORES = 200


class TelegramChannel:
    """Implements ``ChatChannel`` and ``WebhookChannel``. Nothing is connected, and no SDK imported, before it is first used.

    Connections end with ``run``; what is sent after it, as a host does that empties its outbox, opens its own.
    """

    name = "telegram"

    def __init__(self, options: TelegramOptions, *, clock: Clock, random: Random) -> None:
        self._options = options
        self._clock = clock
        self._random = random
        self._gate = FloodGate(clock, per_second=options.max_sends_per_second)
        self._health = ConnectionHealth(clock)
        self._tools: tuple[TelegramApi, ButtonCodec] | None = None
        self._menu: list[tuple[str, str]] = []
        self._menu_known = True
        self._hook: UpdateHook | None = None
        self._drafts: DraftSupport | None = None
        self._chores: set[asyncio.Task[None]] = set()

    @property
    def webhook_path(self) -> str | None:
        return "/telegram/webhook" if self._options.webhook is not None else None

    async def run(self, sink: InboundSink) -> None:
        from channels.telegram.polling import UpdatePoller
        from channels.telegram.webhook import UpdateHook

        api, buttons = self._connect()
        await api.open()
        parts: dict[str, Any] = {
            "buttons": buttons,
            "health": self._health,
            "clock": self._clock,
            "random": self._random,
            "pace": self._options.pace,
            "pressed": lambda press_id, text: self._chore(self._answer(press_id, text)),
            "back": lambda: self._chore(self._show_menu()),
        }
        try:
            if self._options.webhook is not None:
                self._hook = UpdateHook(api, sink, self._options.webhook, **parts)
                await self._hook.run()
            else:
                await UpdatePoller(api, sink, **parts).run()
        finally:
            self._hook = None
            self._health.stopped()
            await self._end_chores()
            await api.close()

    async def send(self, address: Address, message: OutboundMessage, progress: DeliveryProgress) -> None:
        from channels.telegram.delivery import Delivery

        api, buttons = self._connect()
        await Delivery(api, self._gate, buttons, address=address, message=message, progress=progress).run()

    def live(self, address: Address, *, reply_to: str | None, opened: Callable[[str], None]) -> LiveView:
        from channels.telegram.live_view import TelegramLiveView
        from channels.telegram.previews import DraftSupport

        api, _ = self._connect()
        if self._drafts is None:
            self._drafts = DraftSupport()
        return TelegramLiveView(
            api,
            self._gate,
            address,
            reply_to=reply_to,
            opened=opened,
            drafts=self._drafts,
            chore=self._chore,
            clock=self._clock,
            random=self._random,
        )

    async def close_buttons(self, address: Address, ref: str | None, text: str) -> bool:
        from channels.telegram.button_closing import close_buttons

        api, _ = self._connect()
        return ref is not None and await close_buttons(api, self._gate, self._clock, address, ref, text)

    async def fetch(self, attachment: Attachment, destination: Path, *, limit: int) -> None:
        from channels.telegram.downloads import download

        api, _ = self._connect()
        await download(api, attachment, destination, limit=limit)

    async def webhook(self, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer:
        return WebhookAnswer(status=503, body="not ready") if self._hook is None else await self._hook.answer(body, headers)

    async def announce_commands(self, commands: Sequence[ChatCommand]) -> None:
        """Fill the menu; where Telegram is away it is done when it is back. A command that Telegram's menu cannot hold stays out of it."""
        fitting = [command for command in commands if _COMMAND.fullmatch(command.name) and command.description.strip()]
        self._menu = [(command.name, command.description.strip()[:_MAX_DESCRIPTION]) for command in fitting[:_MAX_COMMANDS]]
        self._menu_known = False
        await self._show_menu()

    def health(self) -> ChannelHealth:
        return self._health.now

    def _connect(self) -> "tuple[TelegramApi, ButtonCodec]":
        if self._tools is None:
            from channels.telegram.api import TelegramApi
            from channels.telegram.buttons import ButtonCodec

            self._tools = TelegramApi(self._options), ButtonCodec()
        return self._tools

    async def _show_menu(self) -> None:
        from telegram.error import TelegramError

        if self._menu_known:
            return
        api, _ = self._connect()
        try:
            await api.set_commands(self._menu)
            self._menu_known = True
        except TelegramError as error:
            _log.warning("telegram menu not set", extra={"facts": {"reason": api.words(error)}})

    async def _answer(self, press_id: str, text: str | None) -> None:
        from telegram.error import TelegramError

        api, _ = self._connect()
        try:
            await api.answer_press(press_id, text)
        except TelegramError as error:
            _log.info("telegram press not answered", extra={"facts": {"reason": api.words(error)}})

    def _chore(self, work: Coroutine[Any, Any, None]) -> None:
        """Something small that polling must not wait for; it ends with ``run``."""
        if len(self._chores) >= _MAX_CHORES:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _end_chores(self) -> None:
        chores = list(self._chores)
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
