"""Taking the buttons off a message for which it is too late."""

import logging

from channels.slack.api import Flooded, SlackApi, SlackRefusal, SlackUnreachable
from channels.slack.posting import rendered_parts
from channels.slack.rate_gate import RateGate
from channels.slack.refusals import draft_gone
from channels.slack.target import Target
from features.contracts.clock import Clock

__all__ = ["close_buttons"]

_log = logging.getLogger("pumice.slack")
_PAUSES_S = (0.0, 1.0, 5.0, 30.0)
_UPDATE = "chat.update"


async def close_buttons(api: SlackApi, gate: RateGate, clock: Clock, target: Target, ref: str, text: str) -> bool:
    """Show the message ``ref`` as ``text`` without buttons, with some patience; whether people see how it ended.

    Of a text in several messages ``ref`` is the last, and so the last part is what it shows.
    """
    parts = await rendered_parts(text)
    if not parts:
        return False
    for pause in _PAUSES_S:
        if pause:
            await clock.sleep(pause)
        await gate.turn(_UPDATE, target.channel)
        try:
            await api.call(_UPDATE, channel=target.channel, ts=ref, **{"blocks": [], **parts[-1].arguments([])})
            return True
        except Flooded as flood:
            gate.close(_UPDATE, target.channel, flood.seconds)
        except SlackUnreachable as error:
            _log.info("slack buttons not closed yet", extra={"facts": {"reason": str(error)}})
        except SlackRefusal as error:
            _log.info("slack buttons not closed", extra={"facts": {"reason": str(error)}})
            if error.status < 500:
                return draft_gone(error)
    return False
