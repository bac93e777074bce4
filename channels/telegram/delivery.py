"""Delivering one message: every call in its turn, confirmed one by one."""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from telegram.error import BadRequest, TelegramError

from channels.markup import RichText, italic_line, plain, split, units
from channels.telegram.api import Keyboard, Target, TelegramApi
from channels.telegram.buttons import ButtonCodec
from channels.telegram.delivery_plan import AlbumStep, FileStep, LeftOutStep, Step, TextStep, make_plan
from channels.telegram.files import ReadyFile
from channels.telegram.flood_gate import FloodGate
from channels.telegram.lanes import Flooded
from channels.telegram.limits import MAX_ENTITIES, MAX_TEXT
from channels.telegram.refusals import delivery_failure, draft_gone, is_chat_refusal, not_modified, thread_gone, unreadable
from features.contracts.chat import Address, DeliveryProgress, DeliveryRefused, OutboundMessage
from features.contracts.errors import RetryLater

__all__ = ["Delivery"]

_log = logging.getLogger("pumice.telegram")
_PATIENCE_S = 10.0
_FLOODS_WAITED_OUT = 3
_REPEATED = italic_line("The connection broke while I was sending, so you may have this already:")
_TOPIC_GONE = italic_line("The topic of this conversation is gone, so I answer here.")
_PLAIN_LIMIT = 4000  # a text was refused as too long: leave room for whatever was counted otherwise

T = TypeVar("T")


class Delivery:
    """The delivery of one message to one address."""

    def __init__(
        self,
        api: TelegramApi,
        gate: FloodGate,
        buttons: ButtonCodec,
        *,
        address: Address,
        message: OutboundMessage,
        progress: DeliveryProgress,
    ) -> None:
        self._api = api
        self._gate = gate
        self._target = Target(address.chat, address.thread)
        self._message = message
        self._progress = progress
        self._keyboard: Keyboard = buttons.keyboard(message.buttons)
        self._refusals: list[str] = []
        self._notes: list[RichText] = []
        self._position = 0

    async def run(self) -> None:
        """Raises as ``ChatChannel.send`` does. What a file was refused for is raised when everything else has arrived."""
        steps = await make_plan(self._message)
        done = self._progress.done
        for step in steps[:done]:
            if isinstance(step, LeftOutStep):
                self._refusals.append(step.reason)
        if self._message.possible_duplicate and not self._edits(done):
            self._notes.append(_REPEATED)
        self._position = done
        while self._position < len(steps):
            refs = await self._step(steps[self._position], steps)
            for ref in refs:
                self._position += 1
                await self._progress.confirm(ref, last=self._position == len(steps) and not self._refusals)
        if self._refusals:
            raise DeliveryRefused(" ".join(self._refusals))

    def _edits(self, position: int) -> bool:
        """Whether the first text replaces a draft, which may be done twice and changes nothing."""
        return position == 0 and self._progress.draft is not None and bool(self._message.text.strip())

    async def _step(self, step: Step, steps: list[Step]) -> list[str | None]:
        """Do one step; gives a confirmation for it, or for several that were done with it."""
        match step:
            case LeftOutStep(reason):
                self._refusals.append(reason)
                return [None]
            case TextStep():
                return await self._text(step, steps)
            case FileStep() | AlbumStep():
                return [await self._files(step)]

    # texts

    async def _text(self, step: TextStep, steps: list[Step]) -> list[str | None]:
        keyboard = self._keyboard if step.buttons else ()
        try:
            return [await self._send_or_edit(step.part, keyboard)]
        except _Unreadable as error:
            _log.warning("telegram refused a formatted text", extra={"facts": {"reason": self._api.words(error.error)}})
        if self._position or not self._message.text.strip():
            refs = await self._plain([RichText(step.part.text)], keyboard)
            return [refs[-1]]
        own = next((position for position, each in enumerate(steps) if not isinstance(each, TextStep)), len(steps))
        refs = await self._plain(split(plain(self._message.text), limit=_PLAIN_LIMIT), self._keyboard)
        return [refs[-1]] * own  # confirmed together: these parts are not cut where the formatted ones were

    async def _plain(self, parts: list[RichText], keyboard: Keyboard) -> list[str]:
        try:
            return [await self._send_or_edit(part, keyboard if part is parts[-1] else (), first=part is parts[0]) for part in parts]
        except _Unreadable as error:
            raise DeliveryRefused(f"Telegram refused it: {self._api.words(error.error)}") from error

    async def _send_or_edit(self, part: RichText, keyboard: Keyboard, *, first: bool = True) -> str:
        draft = self._progress.draft
        if first and draft is not None and self._edits(self._position) and await self._edit(draft, part, keyboard):
            return draft
        part = await self._under_notes(part)
        reply_to = self._message.reply_to if self._position == 0 and first else None
        return await self._call(lambda: self._api.send_text(self._target, part, reply_to=reply_to, keyboard=keyboard))

    async def _edit(self, draft: str, part: RichText, keyboard: Keyboard) -> bool:
        """Whether the draft now shows the part; False when it is gone."""
        try:
            await self._call(lambda: self._api.edit_text(self._target, draft, part, keyboard=keyboard), raw=(draft_gone, not_modified))
        except BadRequest as error:
            return not_modified(error)
        return True

    async def _under_notes(self, part: RichText) -> RichText:
        """Put what has to be said before the next text on top of it, or in a message of its own where there is no room."""
        while self._notes:
            note = self._notes.pop()
            topped = part.with_line_before(note)
            if units(topped.text) <= MAX_TEXT and len(topped.spans) <= MAX_ENTITIES:
                part = topped
            else:
                await self._say(note)
        return part

    async def _say(self, note: RichText) -> None:
        await self._call(lambda: self._api.send_text(self._target, note))

    # files

    async def _files(self, step: FileStep | AlbumStep) -> str | None:
        while self._notes:
            await self._say(self._notes.pop())
        if isinstance(step, FileStep):
            return await self._file(step)
        files = [(each.file, each.caption) for each in step.files]
        try:
            return await self._call(lambda: self._api.send_album(self._target, files, reply_to=self._reply_to()), raw=(_one_thing,))
        except (BadRequest, OSError):  # one spoils all; each for itself shows which
            refs = [await self._file(each) for each in step.files]
            return next((ref for ref in refs if ref is not None), None)

    async def _file(self, step: FileStep) -> str | None:
        """Send a file; as a document if it is no picture to Telegram. Gives None, and keeps the reason, when it is refused."""
        try:
            try:
                return await self._upload(step.file, step)
            except BadRequest:
                if not step.file.photo:
                    raise
                return await self._upload(ReadyFile(step.file.path, step.file.name, photo=False), step)
        except BadRequest as error:
            reason = str(delivery_failure(error, self._api.words(error)))
        except OSError as error:
            reason = f"it cannot be read any more: {error.strerror or error}"
        self._refusals.append(f"{step.file.name} was not sent: {reason}")
        return None

    async def _upload(self, file: ReadyFile, step: FileStep) -> str:
        keyboard = self._keyboard if step.buttons else ()
        return await self._call(
            lambda: self._api.send_file(self._target, file, step.caption, reply_to=self._reply_to(), keyboard=keyboard), raw=(_one_thing,)
        )

    def _reply_to(self) -> str | None:
        return self._message.reply_to if self._position == 0 else None

    # calls

    async def _call(self, make: Callable[[], Awaitable[T]], *, raw: tuple[Callable[[TelegramError], bool], ...] = ()) -> T:
        """Wait for the turn, call, and turn errors into the contract's.

        Args:
            raw: errors that the caller handles itself.
        """
        for _ in range(_FLOODS_WAITED_OUT):
            pause = self._gate.closed_for(self._target.chat)
            if pause > _PATIENCE_S:
                break
            await self._gate.turn(self._target.chat)
            try:
                return await make()
            except Flooded as flood:
                self._gate.close(self._target.chat, flood.seconds)
            except TelegramError as error:
                if any(applies(error) for applies in raw):
                    raise
                if thread_gone(error) and self._target.thread is not None:
                    self._target.thread = None
                    await self._say(_TOPIC_GONE)
                elif unreadable(error):
                    raise _Unreadable(error) from error
                else:
                    raise delivery_failure(error, self._api.words(error)) from error
        raise RetryLater("Telegram asks for a pause", after=timedelta(seconds=self._gate.closed_for(self._target.chat)))


class _Unreadable(Exception):
    """Telegram cannot take the text as it is formatted."""

    def __init__(self, error: TelegramError) -> None:
        super().__init__(str(error))
        self.error = error


def _one_thing(error: TelegramError) -> bool:
    return isinstance(error, BadRequest) and not is_chat_refusal(error) and not thread_gone(error)
