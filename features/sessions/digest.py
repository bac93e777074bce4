"""What a list of sessions shows, taken from entries as they are appended so that no list ever reads them."""

from collections.abc import Sequence
from typing import NamedTuple

from features.contracts.messages import UserMessage, message_text
from features.contracts.sessions import MessageEntry, SessionEntry, SessionInfoEntry
from features.sessions.timestamps import iso_text, iso_time

__all__ = ["Digest", "digest"]

_FIRST_MESSAGE_CHARS = 200


class Digest(NamedTuple):
    """What some entries add to their session. ``name`` and ``modified_at`` are None where they say nothing of it."""

    messages: int
    first_message: str
    name: str | None
    modified_at: str | None


def digest(entries: Sequence[SessionEntry]) -> Digest:
    messages, first_message, name, modified_at = 0, "", None, None
    for entry in entries:
        modified_at = _normal_time(entry.timestamp) or modified_at
        match entry:
            case MessageEntry():
                messages += 1
                first_message = first_message or _opening(entry)
            case SessionInfoEntry():
                name = entry.name
            case _:
                pass
    return Digest(messages, first_message, name, modified_at)


def _opening(entry: MessageEntry) -> str:
    """The beginning of what a person said, on one line."""
    if not isinstance(entry.message, UserMessage):
        return ""
    return " ".join(message_text(entry.message)[: 4 * _FIRST_MESSAGE_CHARS].split())[:_FIRST_MESSAGE_CHARS]


def _normal_time(text: str) -> str | None:
    try:
        return iso_text(iso_time(text))
    except (ValueError, OverflowError):
        return None
