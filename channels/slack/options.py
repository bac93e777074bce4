"""How the Slack channel is set up."""

from typing import Literal

import msgspec

__all__ = ["ConnectionPace", "SlackOptions"]


class ConnectionPace(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds: ``ping_s`` between signs of life; ``retry_s`` to ``retry_max_s`` between attempts to connect."""

    ping_s: float = 10.0
    retry_s: float = 1.0
    retry_max_s: float = 60.0


class SlackOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``app_token`` is needed in ``socket`` mode, ``signing_secret`` in ``http`` mode. ``paced`` False only reacts to Slack's refusals."""

    bot_token: str
    app_token: str = ""
    signing_secret: str = ""
    mode: Literal["socket", "http"] = "socket"
    api_url: str = "https://slack.com/api/"
    paced: bool = True
    pace: ConnectionPace = ConnectionPace()

    def __repr__(self) -> str:
        return f"SlackOptions(api_url={self.api_url!r}, mode={self.mode!r})"
