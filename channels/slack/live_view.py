"""An answer on its way: the assistant's status, then a native stream in a thread, or one message that is edited."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from channels.markup import render, tail
from channels.slack.api import Flooded, SlackApi, SlackRefusal, SlackUnreachable
from channels.slack.drafts import Drafts
from channels.slack.mrkdwn import MAX_TEXT, escaped, mrkdwn_parts, without_pings
from channels.slack.rate_gate import RateGate
from channels.slack.target import Target
from features.contracts.clock import Clock

__all__ = ["Recipient", "SlackLiveView"]

_log = logging.getLogger("pumice.slack")
_FIRST_PREVIEW_S = 1.0  # a quick answer costs no preview
_FIRST_STATUS_S = 2.0
_PREVIEW_EVERY_S = 1.2
_BUSY_S = 1.0
_STATUS_AGAIN_S = 90.0  # Slack takes it away after two minutes
_CLOSE_S = 5.0
_MAX_STATUS = 100
_MAX_APPEND = 11_000
_TAIL_CHARS = 2_500
_NEVER = float("inf")
_THINKING = "is thinking…"


class Recipient(msgspec.Struct, frozen=True):
    """Whoever is answered; Slack wants to know for a stream in a channel."""

    team: str
    user: str


class SlackLiveView:
    """Implements ``LiveView``. One task owns all that it sends."""

    lasting = True

    def __init__(
        self,
        api: SlackApi,
        gate: RateGate,
        drafts: Drafts,
        target: Target,
        *,
        recipient: Recipient | None,
        opened: Callable[[str], None],
        clock: Clock,
        error_ids: Callable[[], str],
    ) -> None:
        self._api = api
        self._gate = gate
        self._drafts = drafts
        self._target = target
        self._recipient = recipient
        self._opened = opened
        self._clock = clock
        self._error_ids = error_ids
        self._streams = target.thread is not None and recipient is not None
        self._text = ""
        self._sent = ""  # what the stream holds
        self._line: str | None = None
        self._told: str | None = None  # the assistant's status as Slack shows it
        self._draft: str | None = None
        self._streaming = False
        self._changed = asyncio.Event()
        self._fresh = False
        self._given_up = False
        self._closing = False
        self._began_at = clock.monotonic()
        self._status_at = self._began_at if target.thread is not None else _NEVER
        self._preview_at = self._began_at + _FIRST_PREVIEW_S
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def show(self, text: str) -> None:
        if text != self._text:
            first, self._text = not self._text, text
            self._wake(urgent=first)

    def status(self, line: str | None) -> None:
        if line != self._line:
            self._line = line
            if self._target.thread is not None:
                self._status_at = min(self._status_at, self._clock.monotonic())
            self._wake(urgent=True)

    def _wake(self, *, urgent: bool) -> None:
        """For what makes something due sooner, not for every piece of text."""
        if urgent or not self._fresh:
            self._changed.set()
        self._fresh = True

    async def close(self) -> str | None:
        self._closing = True
        self._changed.set()
        try:
            await _within(self._task, self._clock, _CLOSE_S)
        finally:
            self._task.cancel()
        await asyncio.wait((self._task,))
        return self._draft

    async def _serve(self) -> None:
        try:
            while not self._closing:
                now = self._clock.monotonic()
                if now >= self._status_at:
                    await self._tell_status()
                elif now >= self._due_at():
                    await self._preview()
                else:
                    await _happened(self._changed, self._clock, min(self._status_at, self._due_at()) - now)
                    self._changed.clear()
            await self._end()
        except Exception:  # a view must never cost the answer
            _log.exception("slack live view failed", extra={"facts": {"error_id": self._error_ids()}})

    def _due_at(self) -> float:
        """When the next preview may go; never while there is nothing new."""
        if self._given_up or not self._fresh:
            return _NEVER
        if self._text.strip() or (self._draft is not None and not self._streaming):
            return self._preview_at
        shows_status = self._line is not None and self._target.thread is None
        return max(self._preview_at, self._began_at + _FIRST_STATUS_S) if shows_status else _NEVER

    # the assistant's status

    async def _tell_status(self) -> None:
        self._status_at = self._clock.monotonic() + _STATUS_AGAIN_S
        await self._set_status(f"is working: {self._line}"[:_MAX_STATUS] if self._line else _THINKING)

    async def _set_status(self, words: str) -> None:
        method = "assistant.threads.setStatus"
        if self._gate.spare(method, self._target.channel) and await self._quietly(
            method, channel_id=self._target.channel, thread_ts=self._target.thread, status=without_pings(words)
        ):
            self._told = words or None

    # the text

    async def _preview(self) -> None:
        self._fresh = False
        if self._streams and (not self._streaming or self._text.startswith(self._sent)):
            sent = await self._stream()
        else:
            self._streams = False  # what a stream holds cannot be taken back
            sent = await self._show_draft()
        if not sent:
            self._fresh = True
        self._preview_at = self._clock.monotonic() + (_PREVIEW_EVERY_S if sent else _BUSY_S)

    async def _stream(self) -> bool:
        more = self._unsent()
        if not more:
            return True
        channel = self._target.channel
        if self._streaming:
            if not self._gate.spare("chat.appendStream", channel):
                return False
            if await self._quietly("chat.appendStream", channel=channel, ts=self._draft, markdown_text=without_pings(more)) is None:
                return False
        else:
            assert self._recipient is not None
            # A stream that is begun has to be stopped as well.
            if not self._gate.spare("chat.startStream", channel):
                return False
            begun = await self._quietly(
                "chat.startStream",
                channel=channel,
                thread_ts=self._target.thread,
                recipient_team_id=self._recipient.team,
                recipient_user_id=self._recipient.user,
                markdown_text=without_pings(more),
            )
            if begun is None:
                return False
            self._begin_draft(str(begun["ts"]))
            self._streaming = True
        self._sent += more
        self._fresh = self._fresh or self._sent != self._text
        return True

    def _unsent(self) -> str:
        """The next piece; one that ends within a sequence which could ping waits for the rest."""
        more = self._text[len(self._sent) : len(self._sent) + _MAX_APPEND]
        return more.removesuffix("<")

    async def _show_draft(self) -> bool:
        written = self._composed()
        channel = self._target.channel
        if not written:
            return True
        if self._draft is None:
            if not self._gate.spare("chat.update", channel) or not self._gate.spare("chat.postMessage", channel):
                return False  # a draft that is begun has to be edited as well
            posted = await self._quietly("chat.postMessage", channel=channel, thread_ts=self._target.thread, text=written)
            if posted is None:
                return False
            self._begin_draft(str(posted["ts"]))
            return True
        if self._streaming:
            await self._stop_stream()
        if not self._gate.spare("chat.update", channel):
            return False
        return await self._quietly("chat.update", channel=channel, ts=self._draft, text=written) is not None

    def _begin_draft(self, ref: str) -> None:
        self._draft = ref
        self._opened(ref)

    def _composed(self) -> str:
        """The end of the text, and under it the status."""
        status = f"_{escaped(' '.join(self._line.split()))[:_MAX_STATUS]}_" if self._line and self._target.thread is None else ""
        parts = mrkdwn_parts(render(tail(self._text, _TAIL_CHARS)), limit=MAX_TEXT - len(status) - 2)
        return "\n\n".join(part for part in (parts[-1] if parts else "", status) if part)

    # the end

    async def _end(self) -> None:
        if self._streaming:
            await self._stop_stream()
        if self._told is not None:
            await self._set_status("")

    async def _stop_stream(self) -> None:
        """End the stream with what is still missing, where the text goes on as it began."""
        self._streaming = False
        rest = self._text[len(self._sent) :] if self._text.startswith(self._sent) else ""
        fits = len(rest) <= _MAX_APPEND
        await self._gate.turn("chat.stopStream", self._target.channel)
        stopped = await self._quietly(
            "chat.stopStream", channel=self._target.channel, ts=self._draft, markdown_text=without_pings(rest) if rest and fits else None
        )
        if stopped is not None and fits and self._draft is not None and self._text.startswith(self._sent):
            self._drafts.finished(self._draft, self._text)

    async def _quietly(self, method: str, **arguments: Any) -> dict[str, Any] | None:
        """Call; None when it failed. Whatever it was, the final text shows, so it is not tried again."""
        try:
            return await self._api.call(method, **arguments)
        except Flooded as flood:
            self._gate.close(method, self._target.channel, flood.seconds)
        except (SlackRefusal, SlackUnreachable) as error:
            if method == "chat.startStream":
                self._streams = False  # an older workspace: edit a message instead
            elif method != "assistant.threads.setStatus":
                self._given_up = True
            _log.info("slack preview failed", extra={"facts": {"reason": str(error)}})
        return None


async def _within(task: "asyncio.Task[None]", clock: Clock, seconds: float) -> None:
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()


async def _happened(event: asyncio.Event, clock: Clock, seconds: float) -> None:
    if seconds == _NEVER:
        await event.wait()
    elif not event.is_set():
        waiter = asyncio.ensure_future(event.wait())
        try:
            timer = asyncio.ensure_future(clock.sleep(seconds))
            try:
                await asyncio.wait((waiter, timer), return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
        finally:
            waiter.cancel()
