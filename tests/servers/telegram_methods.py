"""The Bot API's methods but for the long poll."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

from tests.servers.telegram_rules import MAX_CAPTION, MAX_TEXT, Body, Refused, check_keyboard, formatted
from tests.servers.telegram_world import Shown, World

__all__ = ["Methods"]

_MAX_UPLOAD = 50 * 1024 * 1024
_MAX_PHOTO = 10 * 1024 * 1024
_MAX_DOWNLOAD = 20 * 1024 * 1024

_REACTIONS = frozenset(
    "👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝✍🤗🫡🎅🎄☃💅🤪🗿🆒💘🙉🦄😘💊🙊😎👾🤷😡"
)

_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current content "
    "and reply markup of the message"
)


class Methods:
    def __init__(self, world: World) -> None:
        self._world = world
        self.commands: list[dict[str, str]] = []
        self._albums = 0
        self._known: dict[str, Callable[[Body], Any]] = {
            "getme": self._get_me,
            "sendmessage": self._send_message,
            "editmessagetext": self._edit_message_text,
            "editmessagereplymarkup": self._edit_message_reply_markup,
            "deletemessage": self._delete_message,
            "sendmessagedraft": self._send_message_draft,
            "setmessagereaction": self._set_message_reaction,
            "sendchataction": self._send_chat_action,
            "senddocument": lambda body: self._send_file(body, "document"),
            "sendphoto": lambda body: self._send_file(body, "photo"),
            "sendmediagroup": self._send_media_group,
            "getfile": self._get_file,
            "answercallbackquery": self._answer_callback_query,
            "setmycommands": self._set_my_commands,
            "setwebhook": self._set_webhook,
            "deletewebhook": self._delete_webhook,
            "getwebhookinfo": self._webhook_info,
        }

    def call(self, method: str, body: Body) -> Any:
        known = self._known.get(method.lower())
        if known is None:
            raise Refused(404, "Not Found")
        return known(body)

    def _get_me(self, body: Body) -> Any:
        return {**self._world.bot.json(), "can_join_groups": True, "can_read_all_group_messages": False, "supports_inline_queries": False}

    # messages

    def _send_message(self, body: Body) -> Any:
        chat, thread = self._place(body)
        text, entities = formatted(body.text("text"), body.nested("entities"), limit=MAX_TEXT, what="message")
        if not text:
            raise Refused.bad("message text is empty")
        return self._show(Shown(0, chat, text, entities, own=True, thread=thread), body)

    def _send_message_draft(self, body: Body) -> Any:
        """It is shown for 30 seconds, or until a message comes."""
        if not self._world.has_drafts:
            raise Refused(404, "Not Found")
        chat, thread = self._place(body)
        if chat < 0:
            raise Refused.bad("message drafts can be used only in private chats")
        draft = body.number("draft_id")
        if not draft:
            raise Refused.bad("DRAFT_ID_INVALID")
        text, entities = formatted(body.text("text"), body.nested("entities"), limit=MAX_TEXT, what="message")
        self._world.check_pace(chat)
        self._world.drafts[chat][draft] = Shown(draft, chat, text, entities, own=True, thread=thread)
        return True

    def _set_message_reaction(self, body: Body) -> Any:
        chat, message = self._chat(body), body.number("message_id") or 0
        if message not in self._world.messages[chat]:
            raise Refused.bad("message to react not found")
        wanted = [each.get("emoji") for each in body.nested("reaction") or []]
        if len(wanted) > 1 or any(emoji not in _REACTIONS for emoji in wanted):
            raise Refused.bad("REACTION_INVALID")
        self._world.reactions.pop((chat, message), None)
        if wanted:
            self._world.reactions[chat, message] = wanted[0]
        return True

    def _edit_message_text(self, body: Body) -> Any:
        shown = self._to_edit(body)
        if shown.kind != "text":
            raise Refused.bad("message can't be edited")
        text, entities = formatted(body.text("text"), body.nested("entities"), limit=MAX_TEXT, what="message")
        if not text:
            raise Refused.bad("message text is empty")
        buttons = check_keyboard(body.nested("reply_markup"))
        if (text, entities, buttons) == (shown.text, shown.entities, shown.buttons):
            raise Refused.bad(_NOT_MODIFIED)
        shown.text, shown.entities = text, entities
        return self._edited(shown, buttons)

    def _edit_message_reply_markup(self, body: Body) -> Any:
        shown, buttons = self._to_edit(body), check_keyboard(body.nested("reply_markup"))
        if buttons == shown.buttons:
            raise Refused.bad(_NOT_MODIFIED)
        return self._edited(shown, buttons)

    def _to_edit(self, body: Body) -> Shown:
        shown = self._world.messages[self._chat(body)].get(body.number("message_id") or 0)
        if shown is None:
            raise Refused.bad("message to edit not found")
        if not shown.own:
            raise Refused.bad("message can't be edited")
        return shown

    def _edited(self, shown: Shown, buttons: list[list[dict[str, str]]]) -> Any:
        self._world.check_pace(shown.chat)
        shown.buttons, shown.edits = buttons, shown.edits + 1
        return {**self._world.message_json(shown, self._world.bot), "edit_date": int(time.time())}

    def _delete_message(self, body: Body) -> Any:
        if self._world.messages[self._chat(body)].pop(body.number("message_id") or 0, None) is None:
            raise Refused.bad("message to delete not found")
        return True

    def _send_chat_action(self, body: Body) -> Any:
        chat = self._chat(body)
        thread = body.number("message_thread_id")
        if thread is not None and thread != 1 and thread not in self._world.topics[chat]:
            raise Refused.bad("message thread not found")
        if body.text("action") not in ("typing", "upload_photo", "upload_document", "record_voice", "upload_voice"):
            raise Refused.bad("wrong parameter action in request")
        return True

    # files

    def _send_file(self, body: Body, kind: str) -> Any:
        chat, thread = self._place(body)
        name, content = self._upload(body, body.files.get(kind), kind)
        caption, entities = formatted(body.text("caption"), body.nested("caption_entities"), limit=MAX_CAPTION, what="message caption")
        return self._show(Shown(0, chat, caption, entities, own=True, thread=thread, kind=kind, file_name=name, file=content), body)

    def _send_media_group(self, body: Body) -> Any:
        chat, thread = self._place(body)
        media = body.nested("media")
        if not isinstance(media, list) or not 2 <= len(media) <= 10:
            raise Refused.bad("media group must include 2-10 items")
        kinds = {item.get("type") for item in media}
        if not (kinds <= {"photo", "video"} or len(kinds) == 1):
            raise Refused.bad("MEDIA_GROUP_INVALID")
        album = []
        for item in media:
            name, content = self._upload(body, body.files.get(str(item.get("media", "")).removeprefix("attach://")), item["type"])
            caption, entities = formatted(item.get("caption", ""), item.get("caption_entities"), limit=MAX_CAPTION, what="message caption")
            album.append(Shown(0, chat, caption, entities, own=True, thread=thread, kind=item["type"], file_name=name, file=content))
        self._albums += 1
        for each in album:
            each.album = f"album-{self._albums}"
        return [self._show(each, body) for each in album]

    def _upload(self, body: Body, file: tuple[str, bytes] | None, kind: str) -> tuple[str, bytes]:
        if sum(len(content) for _, content in body.files.values()) > _MAX_UPLOAD:
            raise Refused(413, "Request Entity Too Large")
        if file is None:
            raise Refused.bad(f"there is no {kind} in the request")
        name, content = file
        if not content:
            raise Refused.bad("file must be non-empty")
        if kind == "photo" and len(content) > _MAX_PHOTO:
            raise Refused.bad("PHOTO_SAVE_FILE_INVALID")
        if kind == "photo" and not content.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")):
            raise Refused.bad("IMAGE_PROCESS_FAILED")
        return name, content

    def _get_file(self, body: Body) -> Any:
        file_id = body.text("file_id")
        if file_id not in self._world.files:
            raise Refused.bad("wrong file_id or the file is temporarily unavailable")
        size = self._world.files[file_id][1]
        if size > _MAX_DOWNLOAD:
            raise Refused.bad("file is too big")
        return {"file_id": file_id, "file_unique_id": f"u-{file_id}", "file_size": size, "file_path": file_id}

    # the rest

    def _answer_callback_query(self, body: Body) -> Any:
        press = body.text("callback_query_id")
        if press not in self._world.presses:
            raise Refused.bad("query is too old and response timeout expired or query ID is invalid")
        self._world.presses[press] = body.text("text")
        return True

    def _set_my_commands(self, body: Body) -> Any:
        commands = body.nested("commands")
        if not isinstance(commands, list) or len(commands) > 100:
            raise Refused.bad("can't parse commands")
        for each in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", str(each.get("command", ""))):
                raise Refused.bad("BOT_COMMAND_INVALID")
            if not 1 <= len(str(each.get("description", ""))) <= 256:
                raise Refused.bad("BOT_COMMAND_DESCRIPTION_INVALID")
        self.commands = commands
        return True

    def _set_webhook(self, body: Body) -> Any:
        url, secret = body.text("url"), body.text("secret_token")
        if url and not url.startswith("https://"):
            raise Refused.bad("bad webhook: An HTTPS URL must be provided for webhook")
        if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", secret):
            raise Refused.bad("secret token contains unallowed characters")
        self._world.webhook, self._world.webhook_secret = url, secret
        return True

    def _webhook_info(self, _: Body) -> Any:
        return {"url": self._world.webhook, "has_custom_certificate": False, "pending_update_count": len(self._world.updates)}

    def _delete_webhook(self, body: Body) -> Any:
        self._world.webhook = ""
        if json.loads(body.text("drop_pending_updates").lower() or "false"):
            self._world.updates.clear()
        return True

    def _chat(self, body: Body) -> int:
        try:
            chat = int(body.text("chat_id"))
        except ValueError:
            raise Refused.bad("chat not found") from None
        if chat not in self._world.messages:
            raise Refused.bad("chat not found")
        self._world.check_place(chat)
        return chat

    def _place(self, body: Body) -> tuple[int, int | None]:
        """Chat and topic. General is sent to without a topic."""
        if body.values.get("parse_mode"):
            raise Refused.bad("can't parse entities: this double wants entities, not parse_mode")
        chat, thread = self._chat(body), body.number("message_thread_id")
        if thread is not None and (thread == 1 or thread not in self._world.topics[chat]):
            raise Refused.bad("message thread not found")
        return chat, thread

    def _show(self, shown: Shown, body: Body) -> dict[str, Any]:
        reply = body.nested("reply_parameters")
        if reply is not None:
            shown.reply_to = int(reply["message_id"])
            if shown.reply_to not in self._world.messages[shown.chat]:
                if not reply.get("allow_sending_without_reply"):
                    raise Refused.bad("message to be replied not found")
                shown.reply_to = None
        shown.buttons = check_keyboard(body.nested("reply_markup"))
        self._world.check_pace(shown.chat)
        shown.id, shown.sent_at = self._world.next_message_id(shown.chat), time.time()
        self._world.messages[shown.chat][shown.id] = shown
        self._world.drafts.pop(shown.chat, None)
        message = self._world.message_json(shown, self._world.bot)
        if shown.kind == "photo":
            message["photo"] = [{"file_id": "sent", "file_unique_id": "sent", "width": 1, "height": 1}]
        elif shown.kind == "document":
            message["document"] = {"file_id": "sent", "file_unique_id": "sent", "file_name": shown.file_name}
        return message
