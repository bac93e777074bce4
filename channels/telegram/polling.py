"""The polling loop: nothing is acknowledged to Telegram before it is stored.

::

    getMe -> getUpdates(offset) -> sink.accept(messages, cursor) -> getUpdates(next offset) ...
               | 409, 401, network, silence           | cannot store
               v                                      v
             wait, say so in health, try the same offset again
"""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Any

from telegram.error import Conflict, InvalidToken, TelegramError

from channels.telegram.api import TelegramApi
from channels.telegram.buttons import ButtonCodec
from channels.telegram.health import ConnectionHealth
from channels.telegram.intake import UpdateIntake
from channels.telegram.lanes import Flooded
from channels.telegram.options import PollingPace
from channels.telegram.waiting import ended
from features.contracts.chat import Cursor, InboundSink
from features.contracts.clock import Clock

__all__ = ["UpdatePoller"]

_log = logging.getLogger("pumice.telegram")
_WEEK_LESS_A_DAY_S = 6 * 86400.0
_SAME_SERIES = 100_000
_CONFLICT = (
    "Another program reads this bot's messages, and Telegram lets only one. Likely a second Pumice with the same token, "
    "or another tool: stop it or give this host a bot of its own. Trying again."
)
_WEBHOOK = "A webhook was set for this bot, so nothing came by polling; it is being removed."
_TOKEN = "Telegram does not accept the bot's token. Check channels.telegram.token against @BotFather."  # noqa: S105
_STORE = "Messages cannot be stored, so they are left with Telegram until they can (error {})."


class UpdatePoller:
    """Reads the updates of one bot for as long as it is run.

    Args:
        pressed: called with a pressed button's id and what to tell the person, None for nothing, once the press is stored.
        back: called when polling works, at first and after every loss.
    """

    def __init__(
        self,
        api: TelegramApi,
        sink: InboundSink,
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
        self._buttons = buttons
        self._health = health
        self._clock = clock
        self._random = random
        self._pace = pace
        self._pressed = pressed
        self._back = back
        self._intake: UpdateIntake | None = None
        self._cursor = ""
        self._offset: int | None = None
        self._confirmed: int | None = None
        self._last_update_at = clock.monotonic()
        self._failures = 0
        self._probe_s = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        self._health.starting()
        while True:
            try:
                await self._turn()
            except TelegramError as error:
                await self._clock.sleep(await self._trouble(error))
            except Exception:  # the sink's or our own; nothing was acknowledged, so nothing is lost
                error_id = self._error_id()
                _log.exception("telegram updates not stored", extra={"facts": {"error_id": error_id}})
                self._health.lost(_STORE.format(error_id))
                await self._clock.sleep(self._delay())

    async def _turn(self) -> None:
        if self._intake is None:
            await self._introduce()
        working = self._health.now.working
        batch = await self._poll(self._pace.poll_s if working else self._probe_s)
        await self._take(batch)
        self._failures = self._probe_s = 0
        self._health.heard()
        if not working:
            self._back()

    async def _introduce(self) -> None:
        me = await self._api.me()
        self._cursor = f"telegram:{me.id}"
        self._confirmed = await self._sink.cursor(self._cursor)
        self._intake = UpdateIntake(
            me, self._sink, buttons=self._buttons, clock=self._clock, pressed=self._pressed, error_ids=self._error_id
        )

    async def _poll(self, timeout_s: int) -> list[dict[str, Any]]:
        """One long poll, given up when even Telegram's silence has lasted too long."""
        if self._clock.monotonic() - self._last_update_at > _WEEK_LESS_A_DAY_S:
            self._offset = None  # after a quiet week the ids begin anew somewhere; an old offset would swallow the first
        poll = asyncio.ensure_future(self._api.updates(self._offset, timeout_s=timeout_s))
        try:
            if await ended(poll, self._clock, self._pace.silence_s):
                return poll.result()
        finally:
            if not poll.done():
                poll.cancel()
                await asyncio.wait((poll,))
        await self._api.renew_polling()
        raise TelegramError(f"no answer for {self._pace.silence_s:g} s")

    async def _take(self, batch: list[dict[str, Any]]) -> None:
        if not batch:
            return
        next_offset = max(int(update["update_id"]) for update in batch) + 1
        fresh = [update for update in batch if not self._stored_before(int(update["update_id"]))]
        if fresh:
            assert self._intake is not None
            await self._intake.take(fresh, Cursor(name=self._cursor, value=next_offset))
        self._offset = self._confirmed = next_offset
        self._last_update_at = self._clock.monotonic()

    def _stored_before(self, update_id: int) -> bool:
        """Without an offset Telegram gives again what was stored last; ids far below are a new series."""
        if self._offset is not None or self._confirmed is None or update_id >= self._confirmed:
            return False
        if self._confirmed - update_id < _SAME_SERIES:
            return True
        _log.warning("telegram update ids began anew", extra={"facts": {"cursor": self._confirmed, "update_id": update_id}})
        return False

    async def _trouble(self, error: TelegramError) -> float:
        """Say what is wrong; gives the seconds to wait."""
        match error:
            case Conflict() if "webhook" in str(error).lower():
                self._health.lost(_WEBHOOK)
                return await self._without_webhook()
            case Conflict():
                self._health.lost(_CONFLICT)
                self._probe_s = self._pace.poll_s  # a short poll would succeed between two of the other's and prove nothing
                return self._pace.conflict_s * (1 + self._random.random() / 2)
            case InvalidToken():
                self._health.lost(_TOKEN)
                return self._pace.token_s * (1 + self._random.random() / 4)
            case Flooded():
                self._health.lost(f"Telegram asked this bot to pause for {error.seconds:g} s.")
                return error.seconds
            case _:
                self._health.lost(f"No connection to Telegram ({self._api.words(error)}). Trying again.")
                return self._delay()

    async def _without_webhook(self) -> float:
        try:
            await self._api.remove_webhook()
        except TelegramError:
            return self._delay()
        _log.warning("telegram webhook removed")
        return 0.0

    def _delay(self) -> float:
        self._failures += 1
        longest = min(self._pace.retry_s * 2.0 ** min(self._failures - 1, 16), self._pace.retry_max_s)
        return longest * (0.5 + self._random.random() / 2)

    def _error_id(self) -> str:
        return f"{self._random.getrandbits(32):08x}"
