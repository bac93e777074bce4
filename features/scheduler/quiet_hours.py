"""Hours in which nothing starts by itself: "22:00-07:00"."""

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

from features.contracts.errors import UserMustAct

__all__ = ["QuietHours", "parse_quiet_hours"]

_FORM = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)")


class QuietHours(msgspec.Struct, frozen=True):
    """From ``start`` up to ``end`` on the clock of a zone; over midnight where ``end`` is the earlier of the two."""

    start: time
    end: time

    def covers(self, moment: datetime, zone: str) -> bool:
        at = moment.astimezone(ZoneInfo(zone)).time()
        if self.start <= self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end

    def after(self, moment: datetime, zone: str) -> datetime:
        """The moment itself, or the end of the quiet hours that it lies in, in UTC."""
        if not self.covers(moment, zone):
            return moment
        local = moment.astimezone(ZoneInfo(zone))
        day = local.date() + timedelta(days=local.time() >= self.end)
        return max(moment, datetime.combine(day, self.end, ZoneInfo(zone)).astimezone(UTC))


def parse_quiet_hours(text: str) -> QuietHours | None:
    """Read them; None for an empty text.

    Raises:
        UserMustAct: it is not of that form.
    """
    if not text.strip():
        return None
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UserMustAct(f"{text!r} are no quiet hours; write them like 22:00-07:00, on the chat's clock.")
    start, end = time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
    return None if start == end else QuietHours(start, end)
