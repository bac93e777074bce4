"""The truth about the connection to Slack; it is logged once when lost and once when back."""

import logging
from datetime import datetime

from features.contracts.chat import ChannelHealth
from features.contracts.clock import Clock

__all__ = ["ConnectionHealth"]

_log = logging.getLogger("pumice.slack")


class ConnectionHealth:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_event_at: datetime | None = None
        self.now = ChannelHealth(state="stopped")

    def starting(self) -> None:
        self.now = ChannelHealth(state="starting", last_event_at=self._last_event_at)

    def stopped(self) -> None:
        self.now = ChannelHealth(state="stopped", last_event_at=self._last_event_at)

    def working(self) -> None:
        """The connection stands."""
        if self.now.state == "degraded":
            _log.info("slack back")
        self.now = ChannelHealth(state="working", last_event_at=self._last_event_at)

    def heard(self) -> None:
        """Something came from Slack."""
        self._last_event_at = self._clock.now()
        self.working()

    def lost(self, detail: str) -> None:
        """Args: detail: what is wrong and what to do, without secrets."""
        if self.now.state != "degraded":
            _log.warning("slack lost", extra={"facts": {"detail": detail}})
        self.now = ChannelHealth(state="degraded", detail=detail, last_event_at=self._last_event_at)
