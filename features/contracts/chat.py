"""Chats as every channel presents them: addresses, people, messages in and out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec

from features.contracts.errors import RetryLater

__all__ = [
    "Address",
    "Attachment",
    "Button",
    "ChannelHealth",
    "ChatChannel",
    "ChatCommand",
    "ChatSender",
    "Cursor",
    "DeliveryProgress",
    "DeliveryRefused",
    "DeliveryUncertain",
    "DueRun",
    "InboundMessage",
    "InboundSink",
    "LiveView",
    "OutboundFile",
    "OutboundMessage",
    "Overheard",
    "Person",
    "PlaceMoved",
    "ThreadReader",
    "WebhookAnswer",
    "WebhookChannel",
]


class Address(msgspec.Struct, frozen=True, order=True):
    """Where a session lives: ``channel:chat`` or ``channel:chat/thread``."""

    channel: str
    chat: str
    thread: str | None = None

    def __str__(self) -> str:
        return f"{self.channel}:{self.chat}" + (f"/{self.thread}" if self.thread is not None else "")

    @property
    def place(self) -> "Address":
        """The chat itself, without topic or thread; it owns workspace, settings, zone and jobs."""
        return Address(self.channel, self.chat) if self.thread is not None else self

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read the written form.

        Raises:
            ValueError: it is not ``channel:chat`` or ``channel:chat/thread``. A Slack chat is ``team/channel``.
        """
        channel, colon, rest = text.partition(":")
        if not colon or not channel or not rest:
            raise ValueError(f"{text!r} is no chat address; write it as channel:chat, like telegram:12345")
        parts = rest.split("/")
        own = 2 if channel in ("slack", "a2a") else 1
        chat, thread = "/".join(parts[:own]), "/".join(parts[own:])
        return cls(channel, chat, thread or None)


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Who speaks. ``id`` is ``channel:number``, given by the platform and never chosen by the person; ``name`` is only for display.

    ``anonymous`` is an admin who hides, or a channel: never admitted.
    """

    id: str
    name: str
    anonymous: bool = False


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that somebody sent and the channel can fetch. ``size`` is in bytes, None when the platform does not say.

    ``problem`` is set where the file cannot be had; it is told to the person and to the model.
    """

    ref: str
    name: str
    kind: Literal["image", "file", "voice", "audio", "video"]
    mime_type: str | None = None
    size: int | None = None
    problem: str | None = None


class Button(msgspec.Struct, frozen=True, kw_only=True):
    """A button under a message. Pressing it is the same as typing ``command``, by whoever pressed."""

    label: str
    command: str


class DueRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a scheduled job, or another wake-up that no person sent, on its way into a chat.

    ``mode``: a ``prompt`` is for the agent, a ``text`` is delivered as it stands. ``note`` is a line for the model before the prompt,
    ``heading`` one for the person before the answer. ``isolated`` runs in a session of its own. ``by`` is the person behind it, ``owner``
    and ``group`` as for a message of theirs. ``depth`` counts how many jobs made each other until this one. ``key`` is taken once, where
    there is one.
    """

    id: str
    job_id: str
    address: Address
    mode: Literal["prompt", "text"]
    text: str
    due_at: datetime
    title: str = ""
    note: str = ""
    heading: str = ""
    buttons: tuple[tuple[Button, ...], ...] = ()
    isolated: bool = False
    by: str = ""
    owner: bool = False
    group: bool = False
    depth: int = 0
    key: str = ""


class InboundMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Something that arrived.

    ``key`` is the platform's id of the delivery; the same key is taken once, and neither is a message one of whose ``aliases`` was.
    ``ref`` is its id of the message; ``under`` is where in the chat its answer belongs, if not at the end. ``album``
    joins what was sent together. ``kind``: ``edit`` is a new text for the message ``ref``, ``deletion`` takes it back; ``press`` is a
    button, whose command is ``text``. ``addressed`` says whether the bot was meant: always in a private chat; in a group when
    mentioned, answered or given a command. ``attended`` is False where nobody waits who could answer a question. ``extension`` is what an
    extension of the session ``session`` asks for; without a text it asks to go on with what is in the conversation already. ``job`` is
    a scheduled run, ``run``. Of these two no channel makes any.
    """

    key: str
    address: Address
    sender: Person
    text: str
    sent_at: datetime
    kind: Literal["message", "edit", "deletion", "press", "extension", "job"] = "message"
    session: str = ""
    aliases: tuple[str, ...] = ()
    ref: str | None = None
    under: str | None = None
    attachments: tuple[Attachment, ...] = ()
    album: str | None = None
    group: bool = False
    addressed: bool = True
    attended: bool = True
    run: "DueRun | None" = None


class Overheard(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was said in a chat and not to the bot; context, never an order. ``ref`` is the platform's id of the message."""

    sender: Person
    text: str
    sent_at: datetime
    ref: str


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """How far a channel has read; stored in the same transaction as the messages that it acknowledges."""

    name: str
    value: int


class InboundSink(Protocol):
    """Contract.

    - When ``accept`` returns, every message is on the disk or was there before; only then may the platform be told.
    - ``accept`` raises when it could not store them; the channel then keeps them unacknowledged and tries again later.
    - ``cursor`` is the stored value, None at first.
    - ``moved`` says that a place has another id from now on. It returns when everything of it has followed, and raises as ``accept`` does;
      the same move may be told again. Messages from the new id come after it.
    """

    async def moved(self, old: Address, new: Address) -> None: ...

    async def accept(self, messages: Sequence[InboundMessage], cursor: Cursor | None = None) -> None: ...

    async def cursor(self, name: str) -> int | None: ...


class OutboundFile(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    name: str
    caption: str = ""


class OutboundMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Something to deliver. ``text`` is Markdown. ``reply_to`` is the platform's id of the message it answers.

    ``possible_duplicate``: an earlier attempt may have arrived; the channel marks it so, unless it can tell. ``only_for`` is the one person
    of a group whom it concerns, by id; where the platform can, nobody else sees it.
    """

    text: str = ""
    files: tuple[OutboundFile, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    reply_to: str | None = None
    possible_duplicate: bool = False
    only_for: str | None = None


class DeliveryRefused(Exception):
    """The platform will never take this (blocked, chat gone, no rights); the text says why, for people."""


class PlaceMoved(Exception):
    """The platform took nothing, because the place has another id now."""

    def __init__(self, new: Address) -> None:
        super().__init__(f"the chat is {new} now")
        self.new = new


class DeliveryUncertain(RetryLater):
    """The connection broke after the platform could have taken it: it may have arrived, so the next attempt is a possible duplicate."""


class DeliveryProgress(Protocol):
    """How far the delivery of one message came, kept by the outbox.

    A message may need several platform calls (parts of a long text, files). ``done`` is how many were confirmed before; the channel leaves
    those out. After each further one it awaits ``confirm``, which stores the platform's id before it returns. ``draft`` is the live view's
    message, which the first part replaces instead of standing beside it. ``last`` says that nothing is left to send, so that the same
    commit marks the whole delivery as done; a channel that cannot know leaves it out.
    """

    done: int
    draft: str | None

    async def confirm(self, ref: str | None, *, last: bool = False) -> None: ...


class LiveView(Protocol):
    """An answer on its way, as far as a platform can show it.

    - ``show`` takes the whole text so far and ``status`` one line or nothing; both only note the latest state and return at once.
    - The view keeps to the platform's pace; when that is spent it skips states, never final ones, and never delays another chat.
    - ``close`` ends it, typing indicator included, and gives the id of the message that shows the draft, or None. It never raises.
    - ``lasting`` says whether it may leave a message behind when the host dies, so that this has to be noted before anything is shown.
    """

    @property
    def lasting(self) -> bool: ...

    def show(self, text: str) -> None: ...

    def status(self, line: str | None) -> None: ...

    async def close(self) -> str | None: ...


class ChannelHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The truth about a channel. ``working`` is False while it can not hear or speak; ``detail`` then says why and what to do."""

    state: Literal["starting", "working", "degraded", "stopped"]
    detail: str = ""
    last_event_at: datetime | None = None

    @property
    def working(self) -> bool:
        return self.state == "working"


class ChatCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command as a platform's menu shows it."""

    name: str
    description: str


class ChatChannel(Protocol):
    """Contract.

    - ``run`` serves until it is cancelled; it survives every fault of the network and of the platform and shows it in ``health``.
    - ``send`` returns when the platform has taken everything. It raises RetryLater for what may pass (a flood, a lost connection),
      DeliveryUncertain where it may have arrived all the same, PlaceMoved, and DeliveryRefused for what will not. A text that the
      platform cannot parse is sent once more as it was written, plain.
    - ``send`` of one address is never called twice at a time.
    - ``fetch`` writes an attachment to ``destination``, at most ``limit`` bytes; raises UserMustAct with the reason, RetryLater.
    - ``live`` opens a view; ``opened`` is called with the platform's id once the draft is shown.
    - ``close_buttons`` takes the buttons off the message ``ref``, which reads ``text`` (Markdown) from then on. It never raises; False says
      that people cannot see it, so that it has to be said.
    """

    name: str

    async def run(self, sink: InboundSink) -> None: ...

    async def send(self, address: Address, message: OutboundMessage, progress: DeliveryProgress) -> None: ...

    def live(self, address: Address, *, reply_to: str | None, opened: Callable[[str], None]) -> LiveView: ...

    async def close_buttons(self, address: Address, ref: str | None, text: str) -> bool: ...

    async def fetch(self, attachment: Attachment, destination: Path, *, limit: int) -> None: ...

    async def announce_commands(self, commands: Sequence[ChatCommand]) -> None: ...

    def health(self) -> ChannelHealth: ...


@runtime_checkable
class ThreadReader(Protocol):
    """A channel that can look up what was said before.

    - ``earlier`` gives the latest ``limit`` messages of the address between two of them, both left out, in order; none where the platform
      does not tell. The bot's own are among them only where ``after`` is None. It never raises what the platform does.
    """

    async def earlier(self, address: Address, *, before: str, after: str | None, limit: int) -> Sequence[Overheard]: ...


class WebhookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """``status`` and ``body`` go back to the platform."""

    status: int
    body: str = ""
    content_type: str = "text/plain"


@runtime_checkable
class WebhookChannel(Protocol):
    """A channel whose platform calls the host.

    - ``webhook_path`` is where, None while it does not.
    - ``webhook`` verifies the request by its signature or secret before anything else. It answers when everything in it is stored.
    """

    @property
    def webhook_path(self) -> str | None: ...

    async def webhook(self, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer: ...


ChatSender = Callable[[OutboundMessage], Awaitable[None]]
"""Delivers into the chat of one session; the host binds it. Returns once the message is in the outbox."""
