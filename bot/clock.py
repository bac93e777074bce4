"""The machine's clock."""

import asyncio
import time
from datetime import UTC, datetime

__all__ = ["SystemClock"]


class SystemClock:
    """Implements ``features.contracts.clock.Clock``."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
