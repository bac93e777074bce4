"""What Telegram's refusals mean, by who acts next."""

from datetime import timedelta

import httpx
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, TelegramError

from channels.telegram.lanes import Flooded
from features.contracts.chat import Address, DeliveryRefused, DeliveryUncertain, PlaceMoved
from features.contracts.errors import RetryLater

__all__ = ["delivery_failure", "draft_gone", "is_chat_refusal", "not_modified", "thread_gone", "unreadable"]

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PLAIN_WORDS = {
    "blocked by the user": "This person has blocked the bot.",
    "user is deactivated": "This person's Telegram account is gone.",
    "bot was kicked": "The bot was removed from this group.",
    "not a member": "The bot is not a member of this chat.",
    "can't initiate conversation": "This person has to write to the bot first.",
    "chat not found": "Telegram does not know this chat.",
    "not enough rights": "The bot may not write in this chat; an admin has to allow it.",
    "have no rights": "The bot may not write in this chat; an admin has to allow it.",
    "chat_write_forbidden": "The bot may not write in this chat; an admin has to allow it.",
    "topic_closed": "This topic is closed.",
    "entity too large": "The file is larger than Telegram takes.",
}


def delivery_failure(error: TelegramError, words: str) -> Exception:
    """The contract's error for a call that failed.

    Args:
        words: the error's text without secrets.
    """
    match error:
        case Flooded():
            return RetryLater("Telegram asks for a pause", after=timedelta(seconds=error.seconds))
        case InvalidToken():
            return RetryLater("Telegram does not accept the bot's token")
        case ChatMigrated():
            return PlaceMoved(Address("telegram", str(error.new_chat_id)))
        case Forbidden() | BadRequest():
            plain = next((text for mark, text in _PLAIN_WORDS.items() if mark in words.lower()), None)
            return DeliveryRefused(plain or f"Telegram refused it: {words}")
        case _ if isinstance(error.__cause__, _NOT_SENT):
            return RetryLater(f"Telegram cannot be reached: {words}")
        case _:
            return DeliveryUncertain(f"the connection to Telegram broke: {words}")


def is_chat_refusal(error: TelegramError) -> bool:
    """Whether it is the chat that cannot be written to, not just this one thing."""
    return not isinstance(error, BadRequest) or any(mark in str(error).lower() for mark in ("chat not found", "rights", "write_forbidden"))


def unreadable(error: TelegramError) -> bool:
    """Whether the text as it was formatted is the trouble."""
    return isinstance(error, BadRequest) and any(mark in str(error).lower() for mark in ("entit", "too long", "can't parse"))


def thread_gone(error: TelegramError) -> bool:
    return isinstance(error, BadRequest) and any(mark in str(error).lower() for mark in ("thread not found", "topic_deleted"))


def draft_gone(error: TelegramError) -> bool:
    marks = ("message to edit not found", "can't be edited", "message_id_invalid", "message not found")
    return isinstance(error, BadRequest) and any(mark in str(error).lower() for mark in marks)


def not_modified(error: TelegramError) -> bool:
    return isinstance(error, BadRequest) and "not modified" in str(error).lower()
