"""Everything that would be on Slack's side."""

import time
from collections import defaultdict, deque
from itertools import count
from typing import Any

import msgspec

from tests.servers.slack_rules import Refused, pings_in, shown_text

__all__ = ["APP_TOKEN", "BOT_ID", "BOT_TOKEN", "BOT_USER", "SIGNING_SECRET", "TEAM", "FileKept", "Shown", "SlackWorld"]

TEAM, BOT_USER, BOT_ID = "T1", "U0BOT", "B0BOT"
BOT_TOKEN, APP_TOKEN, SIGNING_SECRET = "xoxb-loopback-bot", "xapp-loopback-app", "loopback-signing-secret"
_SCOPES = (
    "app_mentions:read assistant:write channels:history channels:read chat:write commands files:read files:write groups:history groups:read"
    " im:history im:read im:write mpim:history mpim:read reactions:write users:read"
)


class FileKept(msgspec.Struct):
    id: str
    name: str
    mimetype: str
    content: bytes = b""
    length: int = 0
    completed: bool = True


class Shown(msgspec.Struct):
    """A message as it stands there now. ``thread`` is its thread's first message where it is a reply."""

    ts: str
    user: str
    text: str
    own: bool
    thread: str | None = None
    blocks: list[dict[str, Any]] = []
    files: list[str] = []
    streaming: bool = False
    edits: int = 0
    appends: int = 0

    @property
    def shown(self) -> str:
        return shown_text(self.text, self.blocks)

    @property
    def pings(self) -> list[str]:
        return pings_in(self.shown) + pings_in(self.text)

    @property
    def buttons(self) -> list[str]:
        return [element["text"]["text"] for block in self.blocks if block["type"] == "actions" for element in block["elements"]]


class Limits(msgspec.Struct, frozen=True):
    """Calls allowed in any window; None is no limit."""

    conversation_per_second: int | None = None
    per_minute: dict[str, int] = {}


class SlackWorld:
    def __init__(self) -> None:
        self.conversations: dict[str, dict[str, Shown]] = defaultdict(dict)
        self.people = {"U1ANN": "Ann", "U2BOB": "Bob", BOT_USER: "pumice"}
        self.files: dict[str, FileKept] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        self.scopes = set(_SCOPES.split())
        self.whispered: list[tuple[str, str, str]] = []  # channel, person, text
        self.limits = Limits()
        self.known_channels: set[str] | None = None
        self._ts = count(1)
        self._numbers = count(1)
        self._recent: dict[str, deque[float]] = defaultdict(deque)

    def next_ts(self) -> str:
        return f"{int(time.time())}.{next(self._ts):06d}"

    def channel_type(self, channel: str) -> str:
        return {"D": "im", "G": "group"}.get(channel[0], "channel")

    def write(
        self, channel: str, text: str, user: str, *, thread: str | None, files: tuple[tuple[str, str, bytes], ...]
    ) -> tuple[Shown, dict[str, Any]]:
        kept = [self.keep(name, mimetype, content) for name, mimetype, content in files]
        shown = Shown(self.next_ts(), user, text, own=False, thread=thread, files=[file.id for file in kept])
        self.conversations[channel][shown.ts] = shown
        event: dict[str, Any] = {**self.message_json(channel, shown), "channel": channel, "channel_type": self.channel_type(channel)}
        event |= {"event_ts": shown.ts, "client_msg_id": f"client-{next(self._numbers)}"}
        if kept:
            event["subtype"] = "file_share"
        return shown, event

    def message_json(self, channel: str, shown: Shown) -> dict[str, Any]:
        message: dict[str, Any] = {"type": "message", "user": shown.user, "text": shown.text, "ts": shown.ts, "team": TEAM}
        if shown.own:
            message["bot_id"] = BOT_ID
        if shown.thread is not None:
            root = self.conversations[channel].get(shown.thread)
            message |= {"thread_ts": shown.thread, "parent_user_id": root.user if root else "U1ANN"}
        if shown.files:
            message["files"] = [self.file_json(self.files[file]) for file in shown.files]
        return message

    def change(self, channel: str, ts: str, text: str, *, unfurl: bool) -> dict[str, Any]:
        shown = self.conversations[channel][ts]
        before = self.message_json(channel, shown)
        if unfurl:
            now = {**before, "attachments": [{"title": "a page"}]}
        else:
            shown.text = text
            now = {**self.message_json(channel, shown), "edited": {"user": shown.user, "ts": self.next_ts()}}
        event_ts = self.next_ts()
        return self._hidden(channel, "message_changed", event_ts) | {"message": now, "previous_message": before}

    def remove(self, channel: str, ts: str) -> dict[str, Any]:
        shown = self.conversations[channel].pop(ts)
        before = self.message_json(channel, shown)
        return self._hidden(channel, "message_deleted", self.next_ts()) | {"deleted_ts": ts, "previous_message": before}

    def _hidden(self, channel: str, subtype: str, ts: str) -> dict[str, Any]:
        kind = self.channel_type(channel)
        return {"type": "message", "subtype": subtype, "hidden": True, "channel": channel, "channel_type": kind, "ts": ts, "event_ts": ts}

    def press(self, channel: str, ts: str, label: str, user: str) -> dict[str, Any]:
        shown = self.conversations[channel][ts]
        buttons = (element for block in shown.blocks if block["type"] == "actions" for element in block["elements"])
        pressed = next(button for button in buttons if button["text"]["text"] == label)
        return {
            "type": "block_actions",
            "team": {"id": TEAM},
            "user": {"id": user, "team_id": TEAM, "name": self.people.get(user, user)},
            "channel": {"id": channel},
            "container": {"type": "message", "message_ts": ts, "channel_id": channel},
            "message": self.message_json(channel, shown),
            "trigger_id": f"trigger-{next(self._numbers)}",
            "actions": [{**pressed, "action_ts": self.next_ts()}],
        }

    def slash(self, channel: str, text: str, user: str) -> dict[str, Any]:
        return {
            "command": "/pumice",
            "text": text,
            "team_id": TEAM,
            "channel_id": channel,
            "user_id": user,
            "user_name": self.people.get(user, user),
            "trigger_id": f"trigger-{next(self._numbers)}",
            "response_url": "https://hooks.slack.com/commands/T1/1/x",
        }

    def keep(self, name: str, mimetype: str, content: bytes, *, completed: bool = True) -> FileKept:
        file = FileKept(f"F{next(self._numbers)}", name, mimetype, content, len(content), completed)
        self.files[file.id] = file
        return file

    def receive(self, file_id: str, content: bytes) -> None:
        self.files[file_id].content = content

    def file_json(self, file: FileKept) -> dict[str, Any]:
        return {"id": file.id, "name": file.name, "mimetype": file.mimetype, "size": len(file.content), "mode": "hosted"}

    def check_pace(self, method: str, channel: str | None) -> None:
        """Refuse what comes faster than the limits, as the platform does."""
        now = time.monotonic()
        windows: list[tuple[str, int | None, float]] = [(method, self.limits.per_minute.get(method), 60.0)]
        if method == "chat.postMessage":
            windows.append((f"{method} {channel}", self.limits.conversation_per_second, 1.0))
        for key, allowed, window in windows:
            recent = self._recent[key]
            while recent and recent[0] <= now - window:
                recent.popleft()
            if allowed is not None and len(recent) >= allowed:
                wait = max(1, round(recent[0] + window - now + 0.5))
                raise Refused("ratelimited", status=429, headers={"Retry-After": str(wait)})
        for key, _, _ in windows:
            self._recent[key].append(now)
