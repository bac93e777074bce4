"""Telegram, through the Bot API.

Receiving: a long poll of our own, or calls of Telegram's; an update is acknowledged to Telegram only when the sink has stored it.
Sending: Markdown becomes text with entities, cut where Telegram's limits ask for it; a draft that was shown live is edited into the answer.
Pace: one flood gate for everything that is sent; a pause that Telegram asks for holds up that chat alone.
Failure: lost connections, other pollers, refused tokens and dead pools are waited out, and told in ``health``.
"""

from channels.telegram.channel import TelegramChannel
from channels.telegram.options import TelegramOptions, WebhookAddress

__all__ = ["TelegramChannel", "TelegramOptions", "WebhookAddress"]
