"""A chat platform in memory, for tests of the whole host: ``chat.says("hello")``, ``await chat.answer()``."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Literal

import msgspec

from features.contracts.chat import (
    Address,
    Attachment,
    ChannelHealth,
    ChatCommand,
    Cursor,
    DeliveryProgress,
    InboundMessage,
    InboundSink,
    LiveView,
    OutboundMessage,
    Person,
)
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct

__all__ = ["LoopbackChannel", "LoopbackChat", "Shown"]

_PATIENCE_S = 20.0
_numbers = count(1)  # over all channels: a platform goes on counting when the host behind it dies


class Shown(msgspec.Struct, kw_only=True):
    """A message as people see it on the platform. ``edits`` counts how often its text was replaced; ``final`` is False for a draft."""

    ref: str
    text: str
    final: bool
    edits: int = 0
    reply_to: str | None = None
    possible_duplicate: bool = False
    buttons: tuple[tuple[str, ...], ...] = ()
    files: tuple[str, ...] = ()


class LoopbackChannel:
    """Implements ``ChatChannel``, strictly: sends of one address that overlap are an error, and so is a part that was confirmed twice.

    ``handed`` counts the messages that the host has accepted. ``before_send`` and ``after_send`` hold what the next platform calls raise,
    None for a call that goes well; ``after_send`` strikes when people see the message already. While ``gate`` is shut, calls hang.
    Without ``edits_buttons`` a message keeps its buttons, as on a platform that cannot edit.

    Args:
        part_size: longest text of one platform message; a longer one is sent in parts.
    """

    def __init__(self, name: str = "loop", *, clock: Clock, part_size: int = 1000) -> None:
        self.name = name
        self.state: Literal["starting", "working", "degraded", "stopped"] = "starting"
        self.commands: list[ChatCommand] = []
        self.before_send: list[Exception | None] = []
        self.after_send: list[Exception | None] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.downloads: dict[str, bytes | Exception] = {}
        self.typing: set[Address] = set()
        self.status: list[str | None] = []
        self.handed = 0
        self.edits_buttons = True
        self._clock = clock
        self._part_size = part_size
        self._chats: dict[Address, LoopbackChat] = {}
        self._sending: set[Address] = set()
        self._arrived: asyncio.Queue[list[InboundMessage]] = asyncio.Queue()

    def chat(self, chat: str, thread: str | None = None, *, person: str = "1", group: bool = False, name: str = "Anna") -> "LoopbackChat":
        address = Address(self.name, chat, thread)
        if address not in self._chats:
            self._chats[address] = LoopbackChat(self, address, person=person, group=group, name=name)
        return self._chats[address]

    async def run(self, sink: InboundSink) -> None:
        self.state = "working"
        try:
            while True:
                messages = await self._arrived.get()
                await sink.accept(messages, Cursor(name=f"{self.name}:cursor", value=next(_numbers)))
                self.handed += len(messages)
        finally:
            self.state = "stopped"

    async def send(self, address: Address, message: OutboundMessage, progress: DeliveryProgress) -> None:
        assert address not in self._sending, f"two sends to {address} at a time"
        self._sending.add(address)
        try:
            await self._send(address, message, progress)
        finally:
            self._sending.discard(address)

    def live(self, address: Address, *, reply_to: str | None, opened: Callable[[str], None]) -> LiveView:
        return _LoopbackView(self, address, opened)

    async def close_buttons(self, address: Address, ref: str | None, text: str) -> bool:
        chat = self.chat(address.chat, address.thread)
        shown = next((shown for shown in chat.shown if shown.ref == ref), None)
        if shown is None or not self.edits_buttons:
            return False
        shown.text, shown.buttons = text, ()
        shown.edits += 1
        chat.changed.set()
        return True

    async def fetch(self, attachment: Attachment, destination: Path, *, limit: int) -> None:
        content = self.downloads.get(attachment.ref, UserMustAct(f"{attachment.name} is not there."))
        if isinstance(content, Exception):
            raise content
        if len(content) > limit:
            raise UserMustAct(f"{attachment.name} is too large.")
        await asyncio.to_thread(destination.write_bytes, content)

    async def announce_commands(self, commands: Sequence[ChatCommand]) -> None:
        self.commands = list(commands)

    def health(self) -> ChannelHealth:
        return ChannelHealth(state=self.state)

    def arrive(self, messages: list[InboundMessage]) -> None:
        self._arrived.put_nowait(messages)

    def next_key(self) -> str:
        return f"{self.name}-{next(_numbers)}"

    def next_ref(self) -> str:
        return f"m{next(_numbers)}"

    def now(self) -> datetime:
        return self._clock.now()

    async def _send(self, address: Address, message: OutboundMessage, progress: DeliveryProgress) -> None:
        parts = [message.text[start : start + self._part_size] for start in range(0, len(message.text), self._part_size)] or [""]
        flagged = message.possible_duplicate and not (progress.done == 0 and progress.draft is not None)
        for number in range(progress.done, len(parts)):
            await self.gate.wait()
            _fail(self.before_send)
            last = number == len(parts) - 1
            ref = self._show(address, message, parts[number], progress.draft if number == 0 else None, flagged=flagged, last=last)
            flagged = False
            _fail(self.after_send)
            await progress.confirm(ref, last=last)

    def _show(self, address: Address, message: OutboundMessage, text: str, draft: str | None, *, flagged: bool, last: bool) -> str:
        chat = self.chat(address.chat, address.thread)
        shown = next((shown for shown in chat.shown if shown.ref == draft), None)
        if shown is None:
            shown = Shown(ref=self.next_ref(), text=text, final=True, reply_to=message.reply_to)
            chat.shown.append(shown)
        else:
            shown.edits += 1
        shown.text, shown.final, shown.possible_duplicate = text, True, flagged
        if last:
            shown.buttons = tuple(tuple(button.command for button in row) for row in message.buttons)
            shown.files = tuple(file.name for file in message.files)
        chat.changed.set()
        return shown.ref


def _fail(faults: list[Exception | None]) -> None:
    """Raise the next fault, if it is this call's turn to fail."""
    if faults and (fault := faults.pop(0)) is not None:
        raise fault


class _LoopbackView:
    """Implements ``LiveView`` without a pace: every state is shown."""

    lasting = True

    def __init__(self, channel: LoopbackChannel, address: Address, opened: Callable[[str], None]) -> None:
        self._channel = channel
        self._chat = channel.chat(address.chat, address.thread)
        self._opened = opened
        self._draft: Shown | None = None
        channel.typing.add(address)

    def show(self, text: str) -> None:
        if self._draft is None:
            self._draft = Shown(ref=self._channel.next_ref(), text=text, final=False)
            self._chat.shown.append(self._draft)
            self._opened(self._draft.ref)
        else:
            self._draft.text = text
            self._draft.edits += 1
        self._chat.changed.set()

    def status(self, line: str | None) -> None:
        self._channel.status.append(line)

    async def close(self) -> str | None:
        self._channel.typing.discard(self._chat.address)
        return self._draft.ref if self._draft is not None else None


class LoopbackChat:
    """One chat of the platform: what was said is sent, and ``shown`` is what its people see of the bot, oldest first."""

    def __init__(self, channel: LoopbackChannel, address: Address, *, person: str, group: bool, name: str) -> None:
        self.address = address
        self.shown: list[Shown] = []
        self.changed = asyncio.Event()
        self._channel = channel
        self._person = Person(id=f"{channel.name}:{person}", name=name)
        self._group = group
        self._read = 0

    def message(
        self,
        text: str,
        *,
        kind: Literal["message", "edit", "press"] = "message",
        ref: str | None = None,
        sent_at: datetime | None = None,
        attachments: tuple[Attachment, ...] = (),
        album: str | None = None,
        sender: Person | None = None,
    ) -> InboundMessage:
        return InboundMessage(
            key=self._channel.next_key(),
            address=self.address,
            sender=sender or self._person,
            text=text,
            sent_at=sent_at or self._channel.now(),
            kind=kind,
            ref=ref or self._channel.next_ref(),
            attachments=attachments,
            album=album,
            group=self._group,
        )

    def says(
        self,
        text: str,
        *,
        attachments: tuple[Attachment, ...] = (),
        album: str | None = None,
        sender: Person | None = None,
        sent_at: datetime | None = None,
    ) -> InboundMessage:
        """Somebody writes; the message is on its way to the host when this returns."""
        message = self.message(text, attachments=attachments, album=album, sender=sender, sent_at=sent_at)
        self._channel.arrive([message])
        return message

    def edits(self, message: InboundMessage, text: str) -> None:
        self._channel.arrive([self.message(text, kind="edit", ref=message.ref)])

    def presses(self, command: str, *, sender: Person | None = None) -> None:
        self._channel.arrive([self.message(command, kind="press", sender=sender)])

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until what is shown is as it should be."""
        async with asyncio.timeout(_PATIENCE_S):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def answer(self) -> Shown:
        """The next complete message of the bot that was not looked at yet."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                complete = [shown for shown in self.shown if shown.final]
                if len(complete) > self._read:
                    self._read += 1
                    return complete[self._read - 1]
                self.changed.clear()
                await self.changed.wait()

    async def draft(self, text: str) -> Shown:
        """The draft, once it shows ``text``."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                for shown in self.shown:
                    if not shown.final and text in shown.text:
                        return shown
                self.changed.clear()
                await self.changed.wait()
