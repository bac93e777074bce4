"""The one form in which entries hold times: ISO 8601, UTC, milliseconds, ``Z``."""

from datetime import UTC, datetime

from features.contracts.clock import unix_ms

__all__ = ["iso_text", "iso_time", "iso_unix_ms"]


def iso_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_time(text: str) -> datetime:
    """Read any ISO form; without an offset it is UTC.

    Raises:
        ValueError: it is no time.
    """
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def iso_unix_ms(text: str) -> int:
    """Unix ms of an entry's timestamp; 0 where it cannot be read, since a time is no reason to lose the entry."""
    try:
        return unix_ms(iso_time(text))
    except (ValueError, OverflowError):
        return 0
