"""Time, handed in. Nothing else in the house asks the machine what time it is."""

from datetime import datetime
from typing import Protocol

__all__ = ["Clock", "unix_ms"]


class Clock(Protocol):
    """Contract.

    - ``now`` is aware and in UTC; it may jump when the machine's clock is set.
    - ``monotonic`` is seconds that never go back; durations are measured with it.
    - ``sleep`` may be cancelled.
    """

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


def unix_ms(moment: datetime) -> int:
    """Milliseconds since 1970, as message timestamps hold them."""
    return int(moment.timestamp() * 1000)
