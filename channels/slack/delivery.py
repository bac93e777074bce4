"""Delivering one message: every call in its turn, confirmed one by one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from channels.markup import render
from channels.slack.api import Flooded, SlackApi, SlackRefusal, SlackUnreachable
from channels.slack.buttons import button_blocks
from channels.slack.drafts import Drafts
from channels.slack.files import problem_with
from channels.slack.mrkdwn import mrkdwn_parts
from channels.slack.posting import Part, plain_parts, rendered_parts
from channels.slack.rate_gate import RateGate
from channels.slack.refusals import delivery_failure, draft_gone, thread_gone, unreadable
from channels.slack.target import Target
from features.contracts.chat import DeliveryProgress, DeliveryRefused, OutboundFile, OutboundMessage
from features.contracts.errors import RetryLater

__all__ = ["Delivery"]

_log = logging.getLogger("pumice.slack")
_PATIENCE_S = 10.0
_FLOODS_WAITED_OUT = 3
_REPEATED = "_The connection broke while I was sending, so you may have this already:_"
_THREAD_GONE = "_The thread of this conversation is gone, so I answer here._"
_ONLY_BUTTONS = Part("Choose:")

T = TypeVar("T")


class Delivery:
    """The delivery of one message to one address. Texts first, then files; the buttons stand under the last text."""

    def __init__(
        self, api: SlackApi, gate: RateGate, drafts: Drafts, *, target: Target, message: OutboundMessage, progress: DeliveryProgress
    ) -> None:
        self._api = api
        self._gate = gate
        self._drafts = drafts
        self._target = target
        self._message = message
        self._progress = progress
        self._buttons = button_blocks(message.buttons)
        self._notes: list[str] = []
        self._refusals: list[str] = []

    async def run(self) -> None:
        """Raises as ``ChatChannel.send`` does. What a file was refused for is raised when everything else has arrived."""
        parts = await rendered_parts(self._message.text)
        if not parts and self._buttons:
            parts = [_ONLY_BUTTONS]
        steps: list[Part | OutboundFile] = [*parts, *self._message.files]
        done = self._progress.done
        replaces_draft = done == 0 and self._progress.draft is not None and bool(parts)
        if self._message.possible_duplicate and not replaces_draft:
            self._notes.append(_REPEATED)
        for position in range(done, len(steps)):
            step = steps[position]
            last_text = position == len(parts) - 1
            ref = await (self._file(step) if isinstance(step, OutboundFile) else self._text(step, position, last=last_text))
            await self._progress.confirm(ref, last=position == len(steps) - 1 and not self._refusals)
        if self._refusals:
            raise DeliveryRefused(" ".join(self._refusals))

    # texts

    async def _text(self, part: Part, position: int, *, last: bool) -> str:
        blocks = self._buttons if last else []
        draft = self._progress.draft if position == 0 else None
        if draft is not None and not blocks and self._drafts.shows(draft, self._message.text):
            return draft
        try:
            return await self._put(part, blocks, draft)
        except _Unreadable as error:
            _log.warning("slack refused a formatted text", extra={"facts": {"reason": str(error)}})
        pieces = plain_parts(self._message.text) if part.markdown else [Part(part.text)]
        try:
            refs = [await self._put(piece, [], draft if piece is pieces[0] else None) for piece in pieces]
            if blocks:
                refs.append(await self._post(_ONLY_BUTTONS, blocks))
            return refs[-1]
        except _Unreadable as error:
            raise DeliveryRefused(f"Slack refused it: {error}") from None

    async def _put(self, part: Part, blocks: list[dict[str, Any]], draft: str | None) -> str:
        if draft is not None and await self._update(draft, part, blocks):
            return draft
        return await self._post(part, blocks)

    async def _update(self, draft: str, part: Part, blocks: list[dict[str, Any]]) -> bool:
        """Whether the draft now shows the part; False when it is gone."""
        arguments = {"blocks": [], **part.arguments(blocks)}

        async def update() -> dict[str, Any]:
            return await self._api.call("chat.update", channel=self._target.channel, ts=draft, **arguments)

        try:
            await self._call("chat.update", update, raw=(draft_gone,))
        except SlackRefusal:
            return False
        return True

    async def _post(self, part: Part, blocks: list[dict[str, Any]]) -> str:
        while self._notes:
            await self._send(Part(self._notes.pop(0)), [])
        return await self._send(part, blocks)

    async def _send(self, part: Part, blocks: list[dict[str, Any]]) -> str:
        arguments = part.arguments(blocks)
        person = self._seen_by
        method = "chat.postMessage" if person is None else "chat.postEphemeral"
        if person is not None:
            arguments["user"] = person

        async def post() -> dict[str, Any]:
            return await self._api.call(method, channel=self._target.channel, thread_ts=self._target.thread, **arguments)

        told = await self._call(method, post)
        return str(told["ts" if person is None else "message_ts"])

    @property
    def _seen_by(self) -> str | None:
        """The one person who is to see it; in a direct message it is for them anyway."""
        if self._message.only_for is None or self._target.channel.startswith("D"):
            return None
        return self._message.only_for.rpartition("/")[2] or None

    # files

    async def _file(self, file: OutboundFile) -> str | None:
        """Upload a file. Gives None, and keeps the reason, when it is refused."""
        name = file.name or file.path.name
        problem = await asyncio.to_thread(problem_with, file)
        if problem is not None:
            self._refusals.append(problem)
            return None
        while self._notes:
            await self._send(Part(self._notes.pop(0)), [])
        try:
            uploaded = await self._call("files.getUploadURLExternal", lambda: self._api.upload(file.path, name), raw=(_about_the_file,))
            caption = mrkdwn_parts(render(file.caption)) if file.caption.strip() else []
            for text in caption[1:]:
                await self._send(Part(text), [])
            await self._complete(uploaded, name, caption[0] if caption else None)
            return uploaded
        except SlackRefusal as error:
            self._refusals.append(f"{name} was not sent: {delivery_failure(error)}")
        except OSError as error:
            self._refusals.append(f"{name} was not sent: it cannot be read any more: {error.strerror or error}")
        return None

    async def _complete(self, uploaded: str, name: str, comment: str | None) -> None:
        method = "files.completeUploadExternal"
        files = msgspec.json.encode([{"id": uploaded, "title": name}]).decode()

        async def complete() -> dict[str, Any]:
            return await self._api.call(
                method, form=True, files=files, channel_id=self._target.channel, thread_ts=self._target.thread, initial_comment=comment
            )

        await self._call(method, complete, raw=(_about_the_file,))

    # calls

    async def _call(self, method: str, make: Callable[[], Awaitable[T]], *, raw: tuple[Callable[[SlackRefusal], bool], ...] = ()) -> T:
        """Wait for the turn, call, and turn errors into the contract's.

        Args:
            raw: refusals that the caller handles itself.
        """
        for _ in range(_FLOODS_WAITED_OUT):
            if self._gate.closed_for(method, self._target.channel) > _PATIENCE_S:
                break
            await self._gate.turn(method, self._target.channel)
            try:
                return await make()
            except Flooded as flood:
                self._gate.close(method, self._target.channel, flood.seconds)
            except SlackUnreachable as error:
                raise delivery_failure(error) from error
            except SlackRefusal as error:
                if any(applies(error) for applies in raw):
                    raise
                if thread_gone(error) and self._target.thread is not None:
                    self._target.thread = None
                    self._notes.append(_THREAD_GONE)
                    await self._send(Part(self._notes.pop()), [])
                elif unreadable(error):
                    raise _Unreadable(str(error)) from error
                else:
                    raise delivery_failure(error) from error
        raise RetryLater("Slack asks for a pause", after=timedelta(seconds=self._gate.closed_for(method, self._target.channel)))


class _Unreadable(Exception):
    """Slack cannot take the text as it is formatted."""


def _about_the_file(error: SlackRefusal) -> bool:
    return error.code.startswith(("file", "invalid_file", "storage", "malware", "HTTP 4", "posting_to_general"))
