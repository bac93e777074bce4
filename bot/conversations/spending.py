"""What a place may spend in a day."""

from zoneinfo import ZoneInfo

from features.contracts.chat import Address
from features.contracts.clock import Clock
from features.contracts.messages import AssistantMessage
from features.usage import UsageLedger

__all__ = ["PlaceSpending"]


class PlaceSpending:
    """Implements ``Spending`` for the sessions of one place. A day is one of the place's zone.

    Args:
        budget_usd: US dollars a day, over all models and all sessions of the place; 0 is no limit.
    """

    def __init__(self, usage: UsageLedger, place: Address, zone: str, *, clock: Clock, budget_usd: float) -> None:
        self._usage = usage
        self._place = str(place)
        self._zone = ZoneInfo(zone)
        self._clock = clock
        self._budget = budget_usd

    async def refusal(self) -> str | None:
        """A call that has begun is let end, so that a day may cost a little more than its budget."""
        if self._budget <= 0:
            return None
        now = self._clock.now().astimezone(self._zone)
        spent = await self._usage.spent(self._place, now.date())
        if spent < self._budget:
            return None
        return (
            f"This chat has spent its budget for today: ${spent:,.4g} of ${self._budget:,.4g}. It goes on after midnight "
            f"({self._zone.key}), or when whoever runs this host raises models.budget_usd_per_day. /usage shows what it went for."
        )

    async def charge(self, message: AssistantMessage) -> None:
        now = self._clock.now().astimezone(self._zone)
        await self._usage.record(self._place, f"{message.provider}/{message.model}", message.usage, day=now.date())
