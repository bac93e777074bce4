"""Updates as they came, however they came: mapped, stored, and only then acknowledged."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from telegram import User

from channels.telegram.buttons import ButtonCodec
from channels.telegram.updates import Moved, Press, UpdateMapper
from features.contracts.chat import Cursor, InboundMessage, InboundSink
from features.contracts.clock import Clock

__all__ = ["UpdateIntake"]

_log = logging.getLogger("pumice.telegram")
_TOO_OLD = "This button is too old: I no longer know what it was for. Please ask again."


class UpdateIntake:
    """Takes the updates of one bot.

    Args:
        me: the bot, as getMe tells it.
        pressed: called with a pressed button's id and what to tell the person, None for nothing, once the press is stored.
        error_ids: gives ids for defects.
    """

    def __init__(
        self,
        me: User,
        sink: InboundSink,
        *,
        buttons: ButtonCodec,
        clock: Clock,
        pressed: Callable[[str, str | None], None],
        error_ids: Callable[[], str],
    ) -> None:
        self._mapper = UpdateMapper(me, buttons)
        self._sink = sink
        self._clock = clock
        self._pressed = pressed
        self._error_ids = error_ids

    async def take(self, updates: Sequence[dict[str, Any]], cursor: Cursor | None = None) -> None:
        """Return when everything in them is stored; raises what the sink raises."""
        mapped = [found for update in updates if (found := self._map(update)) is not None]
        for found in mapped:
            if isinstance(found, Moved):  # first, so that what is said in the new group is heard there
                await self._sink.moved(found.old, found.new)
        messages = [message for found in mapped if (message := _message(found)) is not None]
        if messages or cursor is not None:
            await self._sink.accept(messages, cursor)
        for press in mapped:
            if isinstance(press, Press):
                self._pressed(press.id, None if press.message else _TOO_OLD)

    def _map(self, update: dict[str, Any]) -> InboundMessage | Press | Moved | None:
        """One that cannot be read is left out: it would otherwise hold up all that follow."""
        try:
            return self._mapper.map(update, self._clock.now())
        except Exception:
            facts = {"error_id": self._error_ids(), "update_id": update.get("update_id")}
            _log.exception("telegram update not understood", extra={"facts": facts})
            return None


def _message(found: InboundMessage | Press | Moved) -> InboundMessage | None:
    match found:
        case Press():
            return found.message
        case Moved():
            return None
        case _:
            return found
