"""A channel at work against the double of Slack."""

from random import Random
from typing import Any

from bot.clock import SystemClock
from channels.slack import SlackChannel, SlackOptions
from channels.slack.options import ConnectionPace
from features.contracts.chat import Address, Button, OutboundFile, OutboundMessage
from tests.channels.rig import Progress, Sink, running
from tests.servers.slack import SlackServer
from tests.servers.slack_world import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET

__all__ = ["CHANNEL", "DIRECT", "DM", "PACE", "ROOM", "Progress", "Sink", "channel_of", "running", "send", "thread_of"]

DM = "D1"
ROOM = "C1"
DIRECT = Address("slack", f"T1/{DM}")
CHANNEL = Address("slack", f"T1/{ROOM}")
PACE = ConnectionPace(ping_s=0.2, retry_s=0.01, retry_max_s=0.05)


def channel_of(slack: SlackServer, *, mode: Any = "socket", paced: bool = False, **options: Any) -> SlackChannel:
    given: dict[str, Any] = {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "signing_secret": SIGNING_SECRET, "pace": PACE}
    settings = SlackOptions(**{**given, "mode": mode, "api_url": f"{slack.url}/api/", "paced": paced, **options})
    return SlackChannel(settings, clock=SystemClock(), random=Random(7))


def thread_of(ts: str) -> Address:
    return Address("slack", CHANNEL.chat, ts)


async def send(
    channel: SlackChannel,
    text: str = "",
    *,
    to: Address = DIRECT,
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
