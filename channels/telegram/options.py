"""How the Telegram channel is set up."""

import msgspec

__all__ = ["PollingPace", "TelegramOptions", "WebhookAddress"]


class PollingPace(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that the polling loop waits.

    ``poll_s`` is how long Telegram holds an empty answer back; ``silence_s`` is how long a poll may take altogether before its
    connection counts as dead. ``conflict_s`` is at least as long as another program's poll, or the two would go on cutting each other off.
    """

    poll_s: int = 30
    silence_s: float = 75.0
    retry_s: float = 1.0
    retry_max_s: float = 30.0
    conflict_s: float = 35.0
    token_s: float = 60.0


class WebhookAddress(msgspec.Struct, frozen=True):
    """Where Telegram calls, https, and the secret with which it proves itself: 1 to 256 letters, digits, ``_`` and ``-``."""

    url: str
    secret: str

    def __repr__(self) -> str:
        return f"WebhookAddress({self.url!r})"


class TelegramOptions(msgspec.Struct, frozen=True):
    """With ``webhook`` Telegram calls the host instead of being polled.

    ``max_sends_per_second`` is the whole bot's pace; 0 keeps no pace, also not per chat, and only reacts to Telegram's refusals.
    """

    token: str
    api_url: str = "https://api.telegram.org"
    max_sends_per_second: float = 30
    pace: PollingPace = PollingPace()
    webhook: WebhookAddress | None = None

    def __repr__(self) -> str:
        return f"TelegramOptions(api_url={self.api_url!r}, max_sends_per_second={self.max_sends_per_second!r})"
