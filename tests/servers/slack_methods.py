"""The Web API's methods that Pumice calls."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.servers.slack_rules import MAX_EDIT, MAX_MARKDOWN, MAX_TEXT, Refused, check_blocks, check_text
from tests.servers.slack_world import BOT_ID, BOT_USER, TEAM, Shown, SlackWorld

__all__ = ["Methods"]


class Methods:
    def __init__(self, world: SlackWorld) -> None:
        self._world = world
        self._url = ""
        self._methods: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "auth.test": self._auth_test,
            "users.info": self._users_info,
            "chat.postMessage": self._post,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.update": self._update,
            "chat.startStream": self._start_stream,
            "chat.appendStream": self._append_stream,
            "chat.stopStream": self._stop_stream,
            "assistant.threads.setStatus": self._set_status,
            "conversations.replies": self._replies,
            "files.info": self._file_info,
            "files.getUploadURLExternal": self._upload_url,
            "files.completeUploadExternal": self._complete_upload,
        }

    def call(self, method: str, values: Mapping[str, Any], url: str) -> dict[str, Any]:
        self._url = url
        if method not in self._methods:
            raise Refused("unknown_method")
        self._world.check_pace(method, values.get("channel"))
        return self._methods[method](values)

    def _auth_test(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": "https://x.slack.com/", "team": "Loopback", "user": "pumice", "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT_ID}

    def _users_info(self, values: Mapping[str, Any]) -> dict[str, Any]:
        name = self._world.people.get(str(values.get("user")))
        if name is None:
            raise Refused("user_not_found")
        return {"user": {"id": values["user"], "name": name.lower(), "profile": {"display_name": name, "real_name": name}}}

    def _conversation(self, values: Mapping[str, Any], name: str = "channel") -> str:
        channel = str(values.get(name, ""))
        known = self._world.known_channels
        if not channel or channel[0] not in "CDGU" or (known is not None and channel not in known):
            raise Refused("channel_not_found")
        return channel

    def _thread(self, channel: str, values: Mapping[str, Any]) -> str | None:
        thread = values.get("thread_ts")
        if thread is not None and thread not in self._world.conversations[channel]:
            raise Refused("thread_not_found")
        return thread

    def _post(self, values: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._conversation(values)
        text = check_text(str(values.get("text") or ""), limit=MAX_TEXT)
        blocks = check_blocks(values.get("blocks") or [])
        if not text.strip() and not blocks:
            raise Refused("no_text")
        shown = Shown(self._world.next_ts(), BOT_USER, text, own=True, thread=self._thread(channel, values), blocks=blocks)
        self._world.conversations[channel][shown.ts] = shown
        return {"channel": channel, "ts": shown.ts, "message": {"text": text}}

    def _post_ephemeral(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Shown to one person, until they load the page again."""
        channel, user = self._conversation(values), str(values.get("user") or "")
        text = check_text(str(values.get("text") or ""), limit=MAX_TEXT)
        blocks = check_blocks(values.get("blocks") or [])
        if user not in self._world.people:
            raise Refused("user_not_in_channel")
        if not text.strip() and not blocks:
            raise Refused("no_text")
        self._thread(channel, values)
        shown = Shown(self._world.next_ts(), BOT_USER, text, own=True, blocks=blocks)
        self._world.whispered.append((channel, user, shown.shown))
        return {"message_ts": shown.ts}

    def _own(self, values: Mapping[str, Any], *, streaming: bool | None = None) -> Shown:
        shown = self._world.conversations[self._conversation(values)].get(str(values.get("ts")))
        if shown is None:
            raise Refused("message_not_found")
        if not shown.own:
            raise Refused("cant_update_message")
        if streaming is not None and shown.streaming != streaming:
            raise Refused("message_not_in_streaming_state" if streaming else "streaming_state_conflict")
        return shown

    def _update(self, values: Mapping[str, Any]) -> dict[str, Any]:
        shown = self._own(values, streaming=False)
        text = check_text(str(values.get("text") or ""), limit=MAX_EDIT)
        blocks = check_blocks(values["blocks"]) if "blocks" in values else shown.blocks
        if not text.strip() and not blocks:
            raise Refused("no_text")
        shown.text, shown.blocks = text, blocks
        shown.edits += 1
        return {"channel": values["channel"], "ts": shown.ts, "text": text}

    def _start_stream(self, values: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._conversation(values)
        if not values.get("thread_ts"):
            raise Refused("invalid_arguments")
        thread = self._thread(channel, values)
        if not channel.startswith("D"):
            for name in ("recipient_team_id", "recipient_user_id"):
                if not values.get(name):
                    raise Refused(f"missing_{name}")
        text = check_text(str(values.get("markdown_text") or ""), limit=MAX_MARKDOWN)
        shown = Shown(self._world.next_ts(), BOT_USER, text, own=True, thread=thread, streaming=True)
        self._world.conversations[channel][shown.ts] = shown
        return {"channel": channel, "ts": shown.ts}

    def _append_stream(self, values: Mapping[str, Any]) -> dict[str, Any]:
        shown = self._own(values, streaming=True)
        more = check_text(str(values.get("markdown_text") or ""), limit=MAX_MARKDOWN)
        if not more:
            raise Refused("no_text")
        shown.text += more
        shown.appends += 1
        return {"channel": values["channel"], "ts": shown.ts}

    def _stop_stream(self, values: Mapping[str, Any]) -> dict[str, Any]:
        shown = self._own(values, streaming=True)
        shown.text += check_text(str(values.get("markdown_text") or ""), limit=MAX_MARKDOWN)
        shown.streaming = False
        return {"channel": values["channel"], "ts": shown.ts}

    def _set_status(self, values: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._conversation(values, "channel_id")
        thread = str(values.get("thread_ts", ""))
        if thread not in self._world.conversations[channel]:
            raise Refused("thread_not_found")
        self._world.statuses[channel, thread] = str(values.get("status", ""))
        return {}

    def _replies(self, values: Mapping[str, Any]) -> dict[str, Any]:
        channel, thread = self._conversation(values), str(values.get("ts"))
        everything = self._world.conversations[channel]
        if thread not in everything:
            raise Refused("thread_not_found")
        oldest, latest = float(values.get("oldest", 0)), float(values.get("latest", 1e12))
        root = everything[thread]
        found = [root, *(each for each in everything.values() if each.thread == thread and oldest < float(each.ts) < latest)]
        start, size = int(values.get("cursor") or 0), int(values.get("limit", 1000))
        page = found[start : start + size]
        following = str(start + size) if start + size < len(found) else ""
        messages = [self._world.message_json(channel, each) for each in page]
        return {"messages": messages, "has_more": bool(following), "response_metadata": {"next_cursor": following}}

    def _file_info(self, values: Mapping[str, Any]) -> dict[str, Any]:
        file = self._world.files.get(str(values.get("file")))
        if file is None:
            raise Refused("file_not_found")
        url = f"{self._url}/files/{file.id}/{file.name}"
        return {"file": {**self._world.file_json(file), "url_private": url, "url_private_download": url}}

    def _upload_url(self, values: Mapping[str, Any]) -> dict[str, Any]:
        length = int(values.get("length") or 0)
        if not values.get("filename") or length <= 0:
            raise Refused("invalid_arguments")
        file = self._world.keep(str(values["filename"]), "application/octet-stream", b"", completed=False)
        file.length = length
        return {"upload_url": f"{self._url}/upload/{file.id}", "file_id": file.id}

    def _complete_upload(self, values: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._conversation(values, "channel_id")
        thread = self._thread(channel, values)
        completed = [self._world.files[each["id"]] for each in json.loads(values["files"])]
        if any(len(file.content) != file.length for file in completed):
            raise Refused("invalid_file_length")
        for file in completed:
            file.completed = True
        comment = str(values.get("initial_comment") or "")
        shown = Shown(self._world.next_ts(), BOT_USER, comment, own=True, thread=thread, files=[file.id for file in completed])
        self._world.conversations[channel][shown.ts] = shown
        return {"files": [{"id": file.id, "title": file.name} for file in completed]}
