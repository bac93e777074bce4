"""Telegram calls: each request proves itself by its secret, and is answered when everything in it is stored."""

import hmac
import json
import logging
from collections.abc import Callable, Mapping
from random import Random

from telegram.error import InvalidToken, TelegramError

from channels.telegram.api import TelegramApi
from channels.telegram.buttons import ButtonCodec
from channels.telegram.health import ConnectionHealth
from channels.telegram.intake import UpdateIntake
from channels.telegram.lanes import Flooded
from channels.telegram.options import PollingPace, WebhookAddress
from features.contracts.chat import InboundSink, WebhookAnswer
from features.contracts.clock import Clock

__all__ = ["UpdateHook"]

_log = logging.getLogger("pumice.telegram")
_SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105
_LOOK_AGAIN_S = 600.0


class UpdateHook:
    """Keeps the webhook set for as long as it is run; another program's polling would take it away.

    Args:
        pressed, back: as ``UpdatePoller`` has them.
    """

    def __init__(
        self,
        api: TelegramApi,
        sink: InboundSink,
        address: WebhookAddress,
        *,
        buttons: ButtonCodec,
        health: ConnectionHealth,
        clock: Clock,
        random: Random,
        pace: PollingPace,
        pressed: Callable[[str, str | None], None],
        back: Callable[[], None],
    ) -> None:
        self._api = api
        self._sink = sink
        self._address = address
        self._buttons = buttons
        self._health = health
        self._clock = clock
        self._random = random
        self._pace = pace
        self._pressed = pressed
        self._back = back
        self._intake: UpdateIntake | None = None
        self._set = False
        self._failures = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        self._health.starting()
        while True:
            try:
                await self._keep_set()
            except TelegramError as error:
                await self._clock.sleep(self._trouble(error))
            else:
                self._failures = 0
                await self._clock.sleep(_LOOK_AGAIN_S)

    async def answer(self, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer:
        """Telegram sends again what is not answered with 200."""
        given = headers.get(_SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(), self._address.secret.encode()):
            return WebhookAnswer(status=401, body="wrong secret")
        if self._intake is None:
            return WebhookAnswer(status=503, body="not ready")
        try:
            update = json.loads(body)
        except ValueError:
            return WebhookAnswer(status=400, body="no JSON")
        if not isinstance(update, dict):
            return WebhookAnswer(status=400, body="no update")
        try:
            await self._intake.take([update])
        except Exception as error:
            facts = {"error_id": self._error_id(), "error": type(error).__name__}
            _log.exception("telegram update not stored; Telegram sends it again", extra={"facts": facts})
            return WebhookAnswer(status=503, body="not stored")
        self._health.heard()
        return WebhookAnswer(status=200)

    async def _keep_set(self) -> None:
        if self._intake is None:
            me = await self._api.me()
            self._intake = UpdateIntake(
                me, self._sink, buttons=self._buttons, clock=self._clock, pressed=self._pressed, error_ids=self._error_id
            )
        if not self._set or await self._api.webhook_url() != self._address.url:
            if self._set:
                _log.warning("telegram webhook was taken away; setting it again")
            await self._api.set_webhook(self._address.url, self._address.secret)
            self._set = True
        if not self._health.now.working:
            self._health.ready()
            self._back()

    def _trouble(self, error: TelegramError) -> float:
        """Say what is wrong; gives the seconds to wait."""
        self._failures += 1
        match error:
            case InvalidToken():
                self._health.lost("Telegram does not accept the bot's token. Check channels.telegram.token against @BotFather.")
                return self._pace.token_s
            case Flooded():
                self._health.lost(f"Telegram asked this bot to pause for {error.seconds:g} s.")
                return error.seconds
            case _:
                self._health.lost(f"The webhook cannot be set ({self._api.words(error)}). Trying again.")
        longest = min(self._pace.retry_s * 2.0 ** min(self._failures - 1, 16), self._pace.retry_max_s)
        return longest * (0.5 + self._random.random() / 2)

    def _error_id(self) -> str:
        return f"{self._random.getrandbits(32):08x}"
