"""A channel at work against the double of the Bot API."""

from random import Random

from bot.clock import SystemClock
from channels.telegram import TelegramChannel, TelegramOptions
from channels.telegram.options import PollingPace
from features.contracts.chat import Address, Button, OutboundFile, OutboundMessage
from tests.channels.rig import Progress, Sink, running
from tests.servers.telegram import TelegramServer

__all__ = ["CHAT", "GROUP", "HERE", "PACE", "Progress", "Sink", "channel_of", "running", "send"]

CHAT = 1001
GROUP = -2002
HERE = Address("telegram", str(CHAT))
PACE = PollingPace(poll_s=1, silence_s=3.0, retry_s=0.01, retry_max_s=0.05, conflict_s=0.05, token_s=0.05)


def channel_of(telegram: TelegramServer, *, token: str | None = None, pace: PollingPace = PACE, per_second: float = 0) -> TelegramChannel:
    options = TelegramOptions(token or telegram.token, telegram.url, per_second, pace)
    return TelegramChannel(options, clock=SystemClock(), random=Random(7))


async def send(
    channel: TelegramChannel,
    text: str = "",
    *,
    to: Address = HERE,
    files: tuple[OutboundFile, ...] = (),
    buttons: tuple[tuple[Button, ...], ...] = (),
    reply_to: str | None = None,
    possible_duplicate: bool = False,
    progress: Progress | None = None,
) -> Progress:
    progress = progress or Progress()
    message = OutboundMessage(text=text, files=files, buttons=buttons, reply_to=reply_to, possible_duplicate=possible_duplicate)
    await channel.send(to, message, progress)
    return progress
