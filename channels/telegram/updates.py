"""Updates of the Bot API to messages as the host knows them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from telegram import CallbackQuery, Chat, Message, MessageEntity, Update, User

from channels.markup import characters_at
from channels.telegram.buttons import ButtonCodec
from channels.telegram.content import attachments, described_text
from features.contracts.chat import Address, InboundMessage, Person

__all__ = ["Moved", "Press", "UpdateMapper"]

_ANONYMOUS_SENDERS = (1087968824, 136817688, 777000)  # GroupAnonymousBot, Channel Bot, Telegram itself
_GROUPS = ("group", "supergroup")


class Press(msgspec.Struct, frozen=True, kw_only=True):
    """A pressed button. Its spinner turns until it is answered; ``message`` is None when its command is known no more."""

    id: str
    message: InboundMessage | None


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A group that has become a supergroup, under another id."""

    old: Address
    new: Address


class UpdateMapper:
    """Maps the updates of one bot.

    Args:
        me: the bot, as getMe tells it.
    """

    def __init__(self, me: User, buttons: ButtonCodec) -> None:
        self._me = me
        self._buttons = buttons
        self._mention = f"@{me.username}".casefold()

    def map(self, raw: dict[str, Any], now: datetime) -> InboundMessage | Press | Moved | None:
        """Raises whatever an update that is not as documented makes it raise.

        Args:
            now: the time of a press, which the platform does not say.
        """
        update = Update.de_json(raw, None)
        key = f"{self._me.id}:{update.update_id}"
        if update.message:
            return _moved(update.message) or self._message(update.message, key)
        if update.edited_message:
            return self._edit(update.edited_message, key)
        if update.callback_query:
            return self._press(update.callback_query, key, now)
        return None

    def _message(self, message: Message, key: str) -> InboundMessage | None:
        sender = self._sender(message)
        text, files = described_text(message), attachments(message)
        if sender is None or message.chat.type not in ("private", *_GROUPS) or not (text or files):
            return None
        group = message.chat.type in _GROUPS
        return InboundMessage(
            key=key,
            address=_address(message.chat, message),
            sender=sender,
            text=text,
            sent_at=message.date.astimezone(UTC),
            ref=str(message.message_id),
            attachments=files,
            album=message.media_group_id,
            group=group,
            addressed=not group or self._addressed(message),
        )

    def _edit(self, message: Message, key: str) -> InboundMessage | None:
        """A new text; what else changes (a live location, a preview) is no news."""
        mapped = self._message(message, key) if message.text or message.caption else None
        sent_at = (message.edit_date or message.date).astimezone(UTC)
        return msgspec.structs.replace(mapped, kind="edit", sent_at=sent_at) if mapped else None

    def _press(self, query: CallbackQuery, key: str, now: datetime) -> Press:
        message = query.message
        full = message if isinstance(message, Message) else None
        command = self._buttons.command(query.data or "", _label(query, full))
        if message is None or not command:
            return Press(id=query.id, message=None)
        pressed = InboundMessage(
            key=key,
            address=_address(message.chat, full),
            sender=_person(query.from_user),
            text=command,
            sent_at=now,
            kind="press",
            ref=str(message.message_id),
            group=message.chat.type in _GROUPS,
        )
        return Press(id=query.id, message=pressed)

    def _sender(self, message: Message) -> Person | None:
        """Who wrote; None for bots, this one included. Whoever writes in a chat's name is anonymous."""
        user, chat = message.from_user, message.sender_chat
        if chat is not None:
            return Person(id=f"telegram:{chat.id}", name=chat.title or chat.full_name or "a channel", anonymous=True)
        if user is None or user.id in _ANONYMOUS_SENDERS:
            return Person(id=f"telegram:{user.id if user else message.chat.id}", name="an anonymous admin", anonymous=True)
        return None if user.is_bot else _person(user)

    def _addressed(self, message: Message) -> bool:
        text, entities = (message.text, message.entities) if message.text else (message.caption or "", message.caption_entities)
        command = self._command_target(text, entities)
        return command if command is not None else self._mentioned(text, entities) or self._answered(message)

    def _command_target(self, text: str, entities: Sequence[MessageEntity]) -> bool | None:
        """Whether the command that a text begins with is for this bot; None when it begins with none."""
        for entity in entities:
            if entity.type == MessageEntity.BOT_COMMAND and entity.offset == 0:
                _, at, bot = (characters_at(text, [(0, entity.length)])[0] or "").partition("@")
                return not at or f"@{bot}".casefold() == self._mention
        return None

    def _mentioned(self, text: str, entities: Sequence[MessageEntity]) -> bool:
        if any(entity.type == MessageEntity.TEXT_MENTION and entity.user and entity.user.id == self._me.id for entity in entities):
            return True
        places = [(entity.offset, entity.length) for entity in entities if entity.type == MessageEntity.MENTION]
        return any(found is not None and found.casefold() == self._mention for found in characters_at(text, places))

    def _answered(self, message: Message) -> bool:
        """A reply to the bot. A topic's every message counts as a reply to the notice that opened it."""
        answered = message.reply_to_message
        if answered is None or answered.forum_topic_created or answered.from_user is None:
            return False
        return answered.from_user.id == self._me.id


def _moved(message: Message) -> Moved | None:
    """Told in the old group and in the new one."""
    here = str(message.chat.id)
    if message.migrate_to_chat_id:
        return Moved(old=Address("telegram", here), new=Address("telegram", str(message.migrate_to_chat_id)))
    if message.migrate_from_chat_id:
        return Moved(old=Address("telegram", str(message.migrate_from_chat_id)), new=Address("telegram", here))
    return None


def _address(chat: Chat, message: Message | None) -> Address:
    """Replies in ordinary groups have a thread id too; only a topic's messages say that they belong to one."""
    topic = message.message_thread_id if message is not None and message.is_topic_message else None
    return Address("telegram", str(chat.id), str(topic) if topic is not None else None)


def _person(user: User) -> Person:
    return Person(id=f"telegram:{user.id}", name=user.full_name)


def _label(query: CallbackQuery, message: Message | None) -> str | None:
    if message is None or message.reply_markup is None:
        return None
    buttons = (button for row in message.reply_markup.inline_keyboard for button in row)
    return next((button.text for button in buttons if button.callback_data == query.data), None)
