"""What Slack sends, as messages of the host."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from channels.slack.api import Me
from channels.slack.buttons import decoded
from channels.slack.inbound_text import mentioned, readable
from features.contracts.chat import Address, Attachment, InboundMessage, Person

__all__ = ["Incoming", "from_command", "from_event", "from_press"]

_TALK = (None, "file_share", "thread_broadcast", "me_message")
_COMMAND = re.compile(r"/?([a-z][a-z0-9_-]*)(\s|$)")
_KINDS = {"image": "image", "audio": "audio", "video": "video"}


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A message whose names are still ids: ``named`` gives the finished one."""

    message: InboundMessage
    raw: str
    me: str
    user: str

    @property
    def ids(self) -> set[str]:
        return {self.user, *mentioned(self.raw)}

    def named(self, names: Mapping[str, str]) -> InboundMessage:
        sender = msgspec.structs.replace(self.message.sender, name=names.get(self.user, self.user))
        text = readable(self.raw, me=self.me, names=names) if self.message.kind in ("message", "edit") and self.raw else self.message.text
        return msgspec.structs.replace(self.message, sender=sender, text=text)


def from_event(body: Mapping[str, Any], me: Me) -> Incoming | None:
    """An event of the Events API; None for what is not for the host: bots, this one included, and changes without a new text."""
    event = body.get("event") or {}
    if event.get("type") not in ("message", "app_mention"):
        return None
    match event.get("subtype"):
        case "message_changed":
            return _edit(body, event, me)
        case "message_deleted":
            return _deletion(body, event, me)
        case subtype if subtype in _TALK and not event.get("bot_id") and not event.get("bot_profile") and event.get("user"):
            return _talk(body, event, event, me)
        case _:
            return None


def _talk(body: Mapping[str, Any], event: Mapping[str, Any], message: Mapping[str, Any], me: Me) -> Incoming | None:
    """A message's text and files.

    Args:
        event: what tells the conversation.
        message: the message itself, which an edit's event wraps.
    """
    user, ts, channel, text = message["user"], str(message["ts"]), event["channel"], str(message.get("text") or "")
    files = tuple(_attachment(file) for file in message.get("files") or ())
    if user == me.user_id or not (text.strip() or files):
        return None
    direct = event.get("channel_type") == "im" or channel.startswith("D")
    thread_ts = message.get("thread_ts")
    called = event.get("type") == "app_mention" or me.user_id in mentioned(text)
    answered = thread_ts is not None and message.get("parent_user_id") == me.user_id
    client_id = message.get("client_msg_id")
    return Incoming(
        message=InboundMessage(
            key=f"{me.team_id}:{channel}:{ts}",
            aliases=(f"{me.team_id}:{channel}:client:{client_id}",) if client_id else (),
            address=Address("slack", f"{me.team_id}/{channel}", None if direct else str(thread_ts or ts)),
            sender=_person(message.get("user_team") or message.get("team") or body.get("team_id") or me.team_id, user),
            text=text,
            sent_at=_time(ts),
            ref=ts,
            under=str(thread_ts) if direct and thread_ts and thread_ts != ts else None,
            attachments=files,
            group=not direct,
            addressed=direct or called or answered,
        ),
        raw=text,
        me=me.user_id,
        user=user,
    )


def _edit(body: Mapping[str, Any], event: Mapping[str, Any], me: Me) -> Incoming | None:
    """A new text. That a link was unfolded, or a reply counted, changes a message too and is no news."""
    now, before = event.get("message") or {}, event.get("previous_message") or {}
    if not now.get("user") or now.get("bot_id") or now.get("subtype") not in _TALK or now.get("text") == before.get("text"):
        return None
    incoming = _talk(body, event, {**now, "files": ()}, me)
    if incoming is None:
        return None
    edited = str((now.get("edited") or {}).get("ts") or event.get("event_ts") or event["ts"])
    message = incoming.message
    changed = msgspec.structs.replace(message, kind="edit", key=f"{message.key}:edit:{edited}", aliases=(), sent_at=_time(edited))
    return msgspec.structs.replace(incoming, message=changed)


def _deletion(body: Mapping[str, Any], event: Mapping[str, Any], me: Me) -> Incoming | None:
    before = event.get("previous_message") or {}
    if not before.get("user") or before.get("bot_id"):
        return None
    incoming = _talk(body, event, {**before, "ts": event.get("deleted_ts") or before.get("ts")}, me)
    if incoming is None:
        return None
    message = incoming.message
    deleted = msgspec.structs.replace(
        message,
        kind="deletion",
        key=f"{message.key}:deleted",
        aliases=(),
        attachments=(),
        sent_at=_time(str(event.get("event_ts") or event["ts"])),
    )
    return msgspec.structs.replace(incoming, message=deleted)


def from_press(body: Mapping[str, Any], me: Me, now: datetime) -> Incoming | None:
    """A pressed button; None for other things that can be done in a message."""
    action: Mapping[str, Any] = next(iter(body.get("actions") or ()), {})
    channel = (body.get("channel") or {}).get("id")
    user = body.get("user") or {}
    command = decoded(str(action.get("value") or ""))
    if action.get("type") != "button" or not channel or not user.get("id") or not command:
        return None
    message, container = body.get("message") or {}, body.get("container") or {}
    ts = str(container.get("message_ts") or message.get("ts") or "")
    direct = channel.startswith("D")
    thread = message.get("thread_ts") or container.get("thread_ts")
    return Incoming(
        message=InboundMessage(
            key=f"{me.team_id}:{channel}:{ts}:press:{action.get('action_ts')}:{user['id']}",
            address=Address("slack", f"{me.team_id}/{channel}", str(thread) if thread and not direct else None),
            sender=_person(user.get("team_id") or me.team_id, user["id"]),
            text=command,
            sent_at=now,
            kind="press",
            ref=ts or None,
            group=not direct,
        ),
        raw="",
        me=me.user_id,
        user=user["id"],
    )


def from_command(body: Mapping[str, Any], me: Me, now: datetime, known: Iterable[str]) -> Incoming:
    """The slash command: ``/pumice new`` is ``/new``; what begins with no command is said to the agent.

    Args:
        known: the commands there are.
    """
    text = str(body.get("text") or "").strip()
    first = _COMMAND.match(text)
    if not text:
        text = "/help"
    elif first and first[1] in set(known):
        text = "/" + text.removeprefix("/")
    channel, user = str(body["channel_id"]), str(body["user_id"])
    direct = channel.startswith("D")
    return Incoming(
        message=InboundMessage(
            key=f"{me.team_id}:command:{body.get('trigger_id')}",
            address=Address("slack", f"{me.team_id}/{channel}"),
            sender=_person(str(body.get("team_id") or me.team_id), user),
            text=text,
            sent_at=now,
            group=not direct,
        ),
        raw=text,
        me=me.user_id,
        user=user,
    )


def _person(team: str, user: str) -> Person:
    return Person(id=f"slack:{team}/{user}", name=user)


def _time(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)


def _attachment(file: Mapping[str, Any]) -> Attachment:
    name = str(file.get("name") or file.get("title") or "file")
    mime_type = str(file.get("mimetype") or "") or None
    kind: Any = _KINDS.get((mime_type or "").partition("/")[0], "file")
    if file.get("subtype") == "slack_audio" or file.get("media_display_type") == "audio":
        kind = "voice"
    problem = None
    if file.get("mode") in ("tombstone", "hidden_by_limit"):
        problem = f"Slack no longer has {name}."
    elif file.get("mode") == "external" or file.get("is_external"):
        problem = f"{name} is kept outside of Slack, so I cannot fetch it."
    return Attachment(ref=str(file.get("id") or ""), name=name, kind=kind, mime_type=mime_type, size=file.get("size"), problem=problem)
