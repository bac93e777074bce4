"""An answer on its way: the typing indicator, a reaction where others talk too, and a preview of the text while it grows."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from telegram.error import TelegramError

from channels.markup import RichText, italic_line, render, split, tail, units
from channels.telegram.api import Target, TelegramApi
from channels.telegram.flood_gate import FloodGate
from channels.telegram.lanes import Flooded
from channels.telegram.limits import MAX_ENTITIES, MAX_TEXT
from channels.telegram.previews import DraftSupport, EditedPreview, PassingPreview, Preview
from channels.telegram.refusals import not_modified
from channels.telegram.waiting import ended, happened
from features.contracts.chat import Address
from features.contracts.clock import Clock

__all__ = ["TelegramLiveView"]

_log = logging.getLogger("pumice.telegram")
_TYPING_EVERY_S = 4.0  # Telegram shows it for five
_FIRST_PREVIEW_S = 1.0  # a quick answer costs no preview
_FIRST_STATUS_S = 2.0
_PREVIEW_EVERY_S = 1.12  # not before the gate's turn is free again
_PREVIEW_EVERY_IN_GROUPS_S = 3.05
_BUSY_S = 0.5
_CLOSE_S = 5.0
_HEARD = "👀"
_MAX_STATUS = 200
_TAIL_CHARS = 6000


class TelegramLiveView:
    """Implements ``LiveView``. One task owns all that it sends; a view that shows nothing costs one call, in a group two more.

    Args:
        chore: owns what is done after the end, such as taking the reaction away.
    """

    def __init__(
        self,
        api: TelegramApi,
        gate: FloodGate,
        address: Address,
        *,
        reply_to: str | None,
        opened: Callable[[str], None],
        drafts: DraftSupport,
        chore: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
        random: Random,
    ) -> None:
        self._api = api
        self._gate = gate
        self._target = Target(address.chat, address.thread)
        self._chore = chore
        self._clock = clock
        self._random = random
        group = address.chat.startswith("-")
        self._pace = _PREVIEW_EVERY_IN_GROUPS_S if group else _PREVIEW_EVERY_S
        self.lasting = group or not drafts.works
        self._preview: Preview
        if self.lasting:
            self._preview = EditedPreview(api, self._target, reply_to=reply_to, opened=opened)
        else:
            self._preview = PassingPreview(api, self._target, drafts, draft_id=random.getrandbits(30) + 1)
        self._heard = reply_to if group else None
        self._reacted = False
        self._text = ""
        self._status: str | None = None
        self._shown_at = 0.0
        self._shown: RichText | None = None
        self._blank = True
        self._changed = False
        self._sooner = asyncio.Event()
        self._closing = False
        self._previewing = False
        self._given_up = False
        self._began_at = clock.monotonic()
        self._preview_at = self._began_at + _FIRST_PREVIEW_S
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def show(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self._note_change(first_words=self._blank and not text.isspace())

    def status(self, line: str | None) -> None:
        if line != self._status:
            self._status = line
            self._note_change(first_words=False)
            self._sooner.set()

    def _note_change(self, *, first_words: bool) -> None:
        """Wake the task only for what makes something due sooner, not for every delta."""
        if not self._changed or first_words:
            self._sooner.set()
        self._changed = True
        self._blank = self._blank and not first_words

    async def close(self) -> str | None:
        self._closing = True
        try:
            if self._previewing:  # cut off, an edit could still arrive after the final text and cover it
                await ended(self._task, self._clock, _CLOSE_S)
        finally:
            self._task.cancel()
        await asyncio.wait((self._task,))
        if self._reacted:
            self._reacted = False
            self._chore(self._react(None))
        return self._preview.ref

    async def _serve(self) -> None:
        typing_at = self._began_at
        try:
            if self._heard is not None and self._gate.quiet(self._target.chat):
                await self._react(_HEARD)
            while not self._closing:
                now = self._clock.monotonic()
                if now >= typing_at:
                    typing_at = now + _TYPING_EVERY_S
                    await self._type()
                elif self._due_at() <= now:
                    await self._show_preview()
                else:
                    await happened(self._sooner, self._clock, min(typing_at, self._due_at()) - now)
                    self._sooner.clear()
        except Exception:  # a view must never cost the answer
            _log.exception("telegram live view failed", extra={"facts": {"error_id": f"{self._random.getrandbits(32):08x}"}})

    def _due_at(self) -> float:
        """When the next preview may go; never while there is nothing new."""
        if self._given_up:
            return float("inf")
        if not self._changed:
            return float("inf") if self._shown is None else max(self._preview_at, self._shown_at + self._preview.fades_after_s)
        if not self._blank or self._shown is not None:
            return self._preview_at
        return max(self._preview_at, self._began_at + _FIRST_STATUS_S) if self._status else float("inf")

    async def _type(self) -> None:
        if not self._gate.quiet(self._target.chat):
            return
        try:
            await self._api.typing(self._target)
        except Flooded as flood:
            self._gate.close(self._target.chat, flood.seconds)
        except TelegramError as error:
            _log.debug("telegram typing failed", extra={"facts": {"reason": self._api.words(error)}})

    async def _react(self, emoji: str | None) -> None:
        """Tell whoever asked among others that it was heard and is being worked on; None when that is over."""
        assert self._heard is not None
        self._reacted = emoji is not None  # it may be there, whatever becomes of the call
        try:
            await self._api.react(self._target, self._heard, emoji)
        except Flooded as flood:
            self._gate.close(self._target.chat, flood.seconds)
        except TelegramError as error:  # the group does not have it so
            _log.debug("telegram reaction refused", extra={"facts": {"reason": self._api.words(error)}})

    async def _show_preview(self) -> None:
        if not self._gate.free(self._target.chat):
            self._preview_at = self._clock.monotonic() + _BUSY_S
            return
        fading, self._changed = not self._changed, False
        preview = self._composed()
        if preview.text and (fading or preview != self._shown):
            self._previewing = True
            try:
                await self._put(preview)
            finally:
                self._previewing = False
        self._preview_at = self._clock.monotonic() + self._pace

    async def _put(self, preview: RichText) -> None:
        try:
            await self._preview.put(preview)
            self._shown, self._shown_at = preview, self._clock.monotonic()
        except Flooded as flood:
            self._gate.close(self._target.chat, flood.seconds)
            self._changed = True
        except TelegramError as error:
            if not_modified(error):
                self._shown = preview
                return
            self._given_up = True  # whatever it was, the final text shows; more sending would not help
            _log.info("telegram preview given up", extra={"facts": {"reason": self._api.words(error)}})

    def _composed(self) -> RichText:
        """The end of the text, and under it the status."""
        status = italic_line((self._status or "")[:_MAX_STATUS])
        room = MAX_TEXT - (units(status.text) + 2 if status.text else 0)
        parts = split(render(tail(self._text, _TAIL_CHARS)), limit=room, max_spans=MAX_ENTITIES - 1)
        last = parts[-1] if parts else RichText("")
        return last.with_line_after(status) if status.text else last
