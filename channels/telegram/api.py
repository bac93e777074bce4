"""The Bot API as this channel uses it: python-telegram-bot's ``Bot`` without its updater and application.

Polling has connections of its own, so that a long poll never waits for a send nor the other way round.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import IO, Any

import httpx
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    InputMediaDocument,
    InputMediaPhoto,
    Message,
    MessageEntity,
    ReplyParameters,
    User,
)
from telegram.error import TelegramError

from channels.markup import RichText
from channels.telegram.files import ReadyFile
from channels.telegram.lanes import LanedRequest, tls_context
from channels.telegram.options import TelegramOptions

__all__ = ["Keyboard", "Target", "TelegramApi"]

_SEND_LANES = 16
_UPLOAD_TIMEOUT_S = 120.0
_ALLOWED_UPDATES = ["message", "edited_message", "callback_query"]

Keyboard = Sequence[Sequence[tuple[str, str]]]
"""Rows of buttons: label and data."""


class Target:
    """Where a message goes. General has a thread id where it is received and typed in, and none where it is sent to."""

    def __init__(self, chat: str, thread: str | None) -> None:
        self.chat = chat
        self.typing_thread = int(thread) if thread is not None and thread.isdecimal() else None
        self.thread = None if self.typing_thread == 1 else self.typing_thread


class _PollingBot(Bot):
    """Gives updates as they came: one that the library cannot read must not take its whole batch along."""

    __slots__ = ()

    async def raw_updates(self, offset: int | None, timeout_s: int) -> list[dict[str, Any]]:
        data = {"offset": offset, "timeout": timeout_s, "allowed_updates": _ALLOWED_UPDATES}
        updates: list[dict[str, Any]] = await self._post("getUpdates", data, read_timeout=timeout_s + 10.0)
        return updates


class TelegramApi:
    """Every method raises ``TelegramError``; ``words`` tells one without the token.

    What is not closed yet is closed by ``close``; a call after that opens its own connection and closes it.
    """

    def __init__(self, options: TelegramOptions) -> None:
        for name in ("httpx", "httpcore", "telegram"):  # they log addresses, which hold the token, and message contents
            logging.getLogger(name).setLevel(logging.WARNING)
        root = options.api_url.rstrip("/")
        self._token = options.token
        self._tls = tls_context()
        self._polling = LanedRequest(self._tls, lanes=1, read_timeout=20.0)
        self._sending = LanedRequest(self._tls, lanes=_SEND_LANES, read_timeout=20.0)
        self.bot = _PollingBot(options.token, f"{root}/bot", f"{root}/file/bot", request=self._sending, get_updates_request=self._polling)

    def words(self, error: BaseException) -> str:
        return str(error).replace(self._token, "[token]")

    async def open(self) -> None:
        await self._polling.initialize()
        await self._sending.initialize()

    async def close(self) -> None:
        await self._polling.shutdown()
        await self._sending.shutdown()

    async def renew_polling(self) -> None:
        await self._polling.renew()

    async def me(self) -> User:
        return await self.bot.get_me()

    async def updates(self, offset: int | None, *, timeout_s: int) -> list[dict[str, Any]]:
        return await self.bot.raw_updates(offset, timeout_s)

    async def set_webhook(self, url: str, secret: str) -> None:
        await self.bot.set_webhook(
            url, secret_token=secret, allowed_updates=_ALLOWED_UPDATES, max_connections=40, drop_pending_updates=False
        )

    async def webhook_url(self) -> str:
        return (await self.bot.get_webhook_info()).url

    async def remove_webhook(self) -> None:
        await self.bot.delete_webhook(drop_pending_updates=False)

    async def send_text(self, target: Target, text: RichText, *, reply_to: str | None = None, keyboard: Keyboard = ()) -> str:
        sent = await self.bot.send_message(
            target.chat,
            text.text,
            entities=_entities(text),
            message_thread_id=target.thread,
            reply_parameters=_reply(reply_to),
            reply_markup=_markup(keyboard),
        )
        return str(sent.message_id)

    async def edit_text(self, target: Target, ref: str, text: RichText, *, keyboard: Keyboard = ()) -> None:
        await self.bot.edit_message_text(
            text.text, chat_id=target.chat, message_id=int(ref), entities=_entities(text), reply_markup=_markup(keyboard)
        )

    async def send_draft(self, target: Target, draft_id: int, text: RichText) -> None:
        """Show a text that passes, in a private chat; the same ``draft_id``, which is not 0, takes the place of what it showed."""
        await self.bot.send_message_draft(int(target.chat), draft_id, text.text, entities=_entities(text), message_thread_id=target.thread)

    async def react(self, target: Target, ref: str, emoji: str | None) -> None:
        """Put a reaction on somebody's message, or take the bot's away."""
        await self.bot.set_message_reaction(target.chat, int(ref), emoji)

    async def remove_keyboard(self, target: Target, ref: str) -> None:
        await self.bot.edit_message_reply_markup(chat_id=target.chat, message_id=int(ref))

    async def typing(self, target: Target) -> None:
        await self.bot.send_chat_action(target.chat, "typing", message_thread_id=target.typing_thread)

    async def send_file(
        self, target: Target, file: ReadyFile, caption: RichText, *, reply_to: str | None = None, keyboard: Keyboard = ()
    ) -> str:
        method: Callable[..., Awaitable[Message]] = self.bot.send_photo if file.photo else self.bot.send_document
        with file.path.open("rb") as handle:
            sent = await method(
                target.chat,
                InputFile(handle, filename=file.name, read_file_handle=False),
                caption=caption.text or None,
                caption_entities=_entities(caption),
                message_thread_id=target.thread,
                reply_parameters=_reply(reply_to),
                reply_markup=_markup(keyboard),
                read_timeout=_UPLOAD_TIMEOUT_S,
            )
        return str(sent.message_id)

    async def send_album(self, target: Target, files: Sequence[tuple[ReadyFile, RichText]], *, reply_to: str | None = None) -> str:
        """Send 2 to 10 photos, or 2 to 10 documents, as one album."""
        with ExitStack() as opened:
            media = [_album_item(opened.enter_context(file.path.open("rb")), file, caption) for file, caption in files]
            sent = await self.bot.send_media_group(
                target.chat, media, message_thread_id=target.thread, reply_parameters=_reply(reply_to), read_timeout=_UPLOAD_TIMEOUT_S
            )
        return str(sent[0].message_id)

    async def answer_press(self, press_id: str, text: str | None) -> None:
        await self.bot.answer_callback_query(press_id, text=text, show_alert=text is not None)

    async def set_commands(self, commands: Sequence[tuple[str, str]]) -> None:
        await self.bot.set_my_commands([BotCommand(name, description) for name, description in commands])

    async def file_url(self, ref: str) -> tuple[str, int | None]:
        """The address of a file, which holds the token, and its size in bytes where Telegram says it."""
        file = await self.bot.get_file(ref)
        if not file.file_path:
            raise TelegramError("the file has no path")
        return file.file_path, file.file_size

    def downloads(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(verify=self._tls, timeout=httpx.Timeout(20.0))


def _album_item(handle: IO[bytes], file: ReadyFile, caption: RichText) -> InputMediaPhoto | InputMediaDocument:
    kind = InputMediaPhoto if file.photo else InputMediaDocument
    content = InputFile(handle, filename=file.name, attach=True, read_file_handle=False)
    return kind(content, caption=caption.text or None, caption_entities=_entities(caption))


def _entities(text: RichText) -> list[MessageEntity] | None:
    found = []
    for entity in text.entities():
        url = entity.value if entity.kind == "text_link" else None
        language = entity.value or None if entity.kind == "pre" else None
        found.append(MessageEntity(entity.kind, entity.offset, entity.length, url=url, language=language))
    return found or None


def _reply(reply_to: str | None) -> ReplyParameters | None:
    if reply_to is None or not reply_to.isdecimal():
        return None
    return ReplyParameters(int(reply_to), allow_sending_without_reply=True)


def _markup(keyboard: Keyboard) -> InlineKeyboardMarkup | None:
    if not keyboard:
        return None
    return InlineKeyboardMarkup([[InlineKeyboardButton(label, callback_data=data) for label, data in row] for row in keyboard])
