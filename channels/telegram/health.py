"""The truth about the connection to Telegram; it is logged once when lost and once when back."""

import logging
from datetime import datetime

from features.contracts.chat import ChannelHealth
from features.contracts.clock import Clock

__all__ = ["ConnectionHealth"]

_log = logging.getLogger("pumice.telegram")


class ConnectionHealth:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_event_at: datetime | None = None
        self.now = ChannelHealth(state="stopped")

    def starting(self) -> None:
        self.now = ChannelHealth(state="starting", last_event_at=self._last_event_at)

    def stopped(self) -> None:
        self.now = ChannelHealth(state="stopped", last_event_at=self._last_event_at)

    def heard(self) -> None:
        """Telegram was heard, and everything it said is stored."""
        self._last_event_at = self._clock.now()
        self.ready()

    def ready(self) -> None:
        """Telegram can be heard."""
        if self.now.state == "degraded":
            _log.info("telegram back")
        self.now = ChannelHealth(state="working", last_event_at=self._last_event_at)

    def lost(self, detail: str) -> None:
        """Args: detail: what is wrong and what to do, without secrets."""
        if self.now.state != "degraded":
            _log.warning("telegram lost", extra={"facts": {"detail": detail}})
        self.now = ChannelHealth(state="degraded", detail=detail, last_event_at=self._last_event_at)
