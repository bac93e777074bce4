"""Taking the buttons off a message for which it is too late."""

import logging

from telegram.error import BadRequest, Forbidden, TelegramError

from channels.markup import render, split
from channels.telegram.api import Target, TelegramApi
from channels.telegram.flood_gate import FloodGate
from channels.telegram.lanes import Flooded
from channels.telegram.refusals import draft_gone, not_modified
from features.contracts.chat import Address
from features.contracts.clock import Clock

__all__ = ["close_buttons"]

_log = logging.getLogger("pumice.telegram")
_PAUSES_S = (0.0, 1.0, 5.0, 30.0)


async def close_buttons(api: TelegramApi, gate: FloodGate, clock: Clock, address: Address, ref: str, text: str) -> bool:
    """Show the message ``ref`` as ``text`` without buttons, with some patience; whether people see how it ended.

    A text that takes more than one message stays as it is: only its buttons go.
    """
    target, parts = Target(address.chat, address.thread), split(render(text))
    for pause in _PAUSES_S:
        if pause:
            await clock.sleep(pause)
        await gate.turn(target.chat)
        try:
            if len(parts) == 1:
                await api.edit_text(target, ref, parts[0])
                return True
            await api.remove_keyboard(target, ref)
            return False
        except Flooded as flood:
            gate.close(target.chat, flood.seconds)
        except (BadRequest, Forbidden) as error:
            _log.info("telegram buttons not closed", extra={"facts": {"reason": api.words(error)}})
            return not_modified(error) or draft_gone(error)
        except TelegramError as error:
            _log.info("telegram buttons not closed yet", extra={"facts": {"reason": api.words(error)}})
    return False
