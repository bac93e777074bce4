"""The people, chats and messages behind the Bot API's double."""

import re
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec

from tests.servers.telegram_rules import Refused, utf16

__all__ = ["FileIn", "FloodLimits", "Shown", "User", "World"]

_MENTION = re.compile(r"@[A-Za-z]\w{4,31}")
_COMMAND = re.compile(r"^/[a-z0-9_]{1,32}(@\w+)?(?=\s|$)", re.IGNORECASE)


class User(msgspec.Struct, frozen=True):
    id: int
    first_name: str = "Ann"
    username: str | None = None
    is_bot: bool = False

    def json(self) -> dict[str, Any]:
        return {key: value for key, value in msgspec.structs.asdict(self).items() if value is not None}


class FileIn(msgspec.Struct, frozen=True):
    """A file that a person sends. ``size`` is what the platform declares, the content's own when None."""

    name: str = "notes.txt"
    content: bytes = b"hello"
    kind: str = "document"
    mime_type: str | None = None
    size: int | None = None


class Shown(msgspec.Struct):
    """A message as a person sees it now."""

    id: int
    chat: int
    text: str
    entities: list[dict[str, Any]]
    own: bool
    thread: int | None = None
    reply_to: int | None = None
    buttons: list[list[dict[str, str]]] = []
    file_name: str | None = None
    file: bytes | None = None
    kind: str = "text"
    album: str | None = None
    edits: int = 0
    sent_at: float = 0.0

    def styled(self, kind: str) -> list[str]:
        """The pieces of the text under one kind of entity."""
        encoded = self.text.encode("utf-16-le")
        found = [entity for entity in self.entities if entity["type"] == kind]
        return [encoded[2 * each["offset"] : 2 * (each["offset"] + each["length"])].decode("utf-16-le") for each in found]


class FloodLimits(msgspec.Struct, frozen=True):
    """Sends allowed in any window; None is no limit."""

    chat_per_second: int | None = None
    group_per_minute: int | None = None
    bot_per_second: int | None = None


class World:
    """Everything that would be on Telegram's side."""

    def __init__(self, bot: User) -> None:
        self.bot = bot
        self.messages: dict[int, dict[int, Shown]] = defaultdict(dict)
        self.topics: dict[int, set[int]] = defaultdict(set)
        self.files: dict[str, tuple[bytes, int]] = {}
        self.updates: deque[dict[str, Any]] = deque()
        self.limits = FloodLimits()
        self.presses: dict[str, str | None] = {}
        self.has_drafts = True
        self.drafts: dict[int, dict[int, Shown]] = defaultdict(dict)
        self.names: dict[tuple[int, int], str] = {}
        self.reactions: dict[tuple[int, int], str] = {}
        self.upgraded: dict[int, int] = {}
        self.webhook = ""
        self.webhook_secret = ""
        self._update_ids = count(1000)
        self._message_ids: dict[int, count[int]] = defaultdict(lambda: count(1))
        self._sends: dict[str, deque[float]] = defaultdict(deque)

    def next_message_id(self, chat: int) -> int:
        return next(self._message_ids[chat])

    def start_updates_at(self, update_id: int) -> None:
        """As after a quiet week: ids go on somewhere else."""
        self._update_ids = count(update_id)

    def chat_json(self, chat: int) -> dict[str, Any]:
        if chat > 0:
            return {"id": chat, "type": "private", "first_name": "Ann"}
        forum = {"is_forum": True} if self.topics[chat] else {}
        return {"id": chat, "type": "supergroup", "title": f"Group {-chat}", **forum}

    def message_json(self, shown: Shown, sender: User) -> dict[str, Any]:
        message: dict[str, Any] = {
            "message_id": shown.id,
            "date": int(shown.sent_at),
            "chat": self.chat_json(shown.chat),
            "from": sender.json(),
        }
        if shown.thread is not None:
            message |= {"message_thread_id": shown.thread, "is_topic_message": True}
        answered = self.messages[shown.chat].get(shown.reply_to) if shown.reply_to else None
        if answered is not None:
            author = self.bot if answered.own else User(1)
            plain = msgspec.structs.replace(answered, reply_to=None)
            message["reply_to_message"] = self.message_json(plain, author)
        if shown.buttons:
            message["reply_markup"] = {"inline_keyboard": shown.buttons}
        words, entities = ("text", "entities") if shown.kind == "text" else ("caption", "caption_entities")
        if shown.text:
            message[words] = shown.text
        if shown.entities:
            message[entities] = shown.entities
        if shown.album:
            message["media_group_id"] = shown.album
        return message

    def push(self, content: dict[str, Any], *, update_id: int | None = None) -> int:
        number = next(self._update_ids) if update_id is None else update_id
        self.updates.append({"update_id": number, **content})
        return number

    def write(
        self, chat: int, text: str, user: User, *, thread: int | None, reply_to: int | None, album: str | None, file: FileIn | None
    ) -> tuple[Shown, dict[str, Any]]:
        """A person writes; gives what is shown and the message's JSON."""
        if thread is not None:
            self.topics[chat].add(thread)
        shown = Shown(self.next_message_id(chat), chat, text, detected_entities(text), own=False, thread=thread, reply_to=reply_to)
        shown.sent_at, shown.album = time.time(), album
        self.names[chat, shown.id] = user.first_name
        message_parts: dict[str, Any] = {}
        if file is not None:
            shown.kind, shown.file_name, shown.file = file.kind, file.name, file.content
            message_parts = self.file_json(file)
        self.messages[chat][shown.id] = shown
        return shown, self.message_json(shown, user) | message_parts

    def file_json(self, file: FileIn) -> dict[str, Any]:
        file_id = f"file-{len(self.files) + 1}"
        size = len(file.content) if file.size is None else file.size
        self.files[file_id] = (file.content, size)
        base: dict[str, Any] = {"file_id": file_id, "file_unique_id": f"u-{file_id}", "file_size": size}
        if file.kind == "photo":
            small = {**base, "file_id": file_id + "-small", "file_size": 10, "width": 90, "height": 60}
            return {"photo": [small, {**base, "width": 1280, "height": 853}]}
        if file.kind in ("voice", "audio", "video", "animation"):
            base |= {
                "duration": 3,
                "mime_type": file.mime_type or {"voice": "audio/ogg", "audio": "audio/mpeg"}.get(file.kind, "video/mp4"),
            }
        if file.kind in ("video", "animation"):
            base |= {"width": 320, "height": 240}
        if file.kind in ("document", "audio"):
            base |= {"file_name": file.name, "mime_type": file.mime_type or "text/plain"}
        return {file.kind: base}

    def check_place(self, chat: int) -> None:
        if chat in self.upgraded:
            parameters = {"migrate_to_chat_id": self.upgraded[chat]}
            raise Refused(400, "Bad Request: group chat was upgraded to a supergroup chat", parameters)

    def check_pace(self, chat: int) -> None:
        """Refuse what comes faster than the limits, as the platform does."""
        now = time.monotonic()
        windows = [(f"chat {chat}", self.limits.chat_per_second, 1.0), ("bot", self.limits.bot_per_second, 1.0)]
        if chat < 0:
            windows.append((f"group {chat}", self.limits.group_per_minute, 60.0))
        for key, allowed, window in windows:
            recent = self._sends[key]
            while recent and recent[0] <= now - window:
                recent.popleft()
            if allowed is not None and len(recent) >= allowed:
                wait = max(1, round(recent[0] + window - now + 0.5))
                raise Refused(429, f"Too Many Requests: retry after {wait}", {"retry_after": wait})
        for key, _, _ in windows:
            self._sends[key].append(now)


def detected_entities(text: str) -> list[dict[str, Any]]:
    """What the server finds by itself in a person's text."""
    found: list[tuple[str, re.Match[str]]] = []
    if command := _COMMAND.match(text):
        found.append(("bot_command", command))
    found += [("mention", each) for each in _MENTION.finditer(text) if not command or each.start() >= command.end()]
    return [{"type": kind, "offset": utf16(text[: each.start()]), "length": utf16(each[0])} for kind, each in found]


def button_data(shown: Shown, label: str) -> str:
    buttons: Sequence[dict[str, str]] = [button for row in shown.buttons for button in row]
    return next(button["callback_data"] for button in buttons if button["text"] == label)
