"""What the HTTP side needs of the host; ``bot.host.Host`` implements it."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, Protocol

import msgspec

from bot.access import AuditRecord
from bot.http.chat_log import ChatLogFile, ChatLogRow
from bot.http.events import EventHub
from features.contracts.chat import Address, ChannelHealth, ChatCommand
from features.contracts.session_transfer import CheckedSession, ExportedSession, ExportFormat, ImportedSession
from features.contracts.sessions import SessionEntry, SessionHeader, SessionSummary

__all__ = [
    "AccessMember",
    "AccessOverview",
    "ChatLogFile",
    "ChatLogRow",
    "ChatRow",
    "HostHealth",
    "HostView",
    "PairingRequest",
    "SessionDetail",
    "Upload",
    "UsageLine",
]


class HostHealth(msgspec.Struct, frozen=True, kw_only=True):
    """``channels`` holds every enabled channel by name."""

    state: Literal["starting", "running", "stopping"]
    channels: Mapping[str, ChannelHealth]


class ChatRow(msgspec.Struct, frozen=True, kw_only=True):
    """A chat as the list shows it. ``title`` is for people: the last text, a person's name; it may be empty."""

    address: str
    title: str = ""
    last_at: datetime | None = None
    running: bool = False


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A file that came with a request. ``name`` is what the sender called it: a label, never a path."""

    name: str
    mime_type: str | None
    data: bytes


class SessionDetail(msgspec.Struct, frozen=True, kw_only=True):
    summary: SessionSummary
    header: SessionHeader
    entries: Sequence[SessionEntry]
    leaf_id: str | None


class UsageLine(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and US dollars of one place, day and model."""

    place: str
    day: date
    model: str
    calls: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float


class AccessMember(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody, or a group, that is admitted. ``source`` is where from: the configuration or a pairing."""

    id: str
    name: str = ""
    owner: bool = False
    source: Literal["configuration", "pairing"] = "pairing"


class PairingRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    code: str
    expires_at: datetime


class AccessOverview(msgspec.Struct, frozen=True, kw_only=True):
    members: Sequence[AccessMember]
    pending: Sequence[PairingRequest]


class HostView(Protocol):
    """Contract.

    - Everything is asked and said as an owner; whoever calls has checked the token.
    - UserMustAct, RetryLater and OperatorMustAct become answers with their text; anything else is a defect.
    - ``knows`` says whether a chat can exist here: its channel is enabled. The other calls are made for such chats only.
    - ``post`` returns when the message is on the disk, spoken as ``web:owner``, ``attended`` where somebody is there to answer questions;
      ``send`` when it is in the outbox. Both keep uploads first.
    - ``metrics`` is the text that Prometheus reads and its media type, None where that is switched off.
    - ``messages`` are in the order of their ids, at most ``limit``, the newest before ``before``.
    - ``events`` gets every session event of a chat by ``publish``; by ``delivered`` every message of the outbox once it was delivered; by
      ``changed`` one of them that reads otherwise now; and by ``received`` every message that a channel other than this one accepted.
    - ``sessions`` are those of one chat, or of all; newest first. What is asked of a session that is not there is None, or False.
    - ``delete_session`` raises UserMustAct where an extension forbids it.
    - ``set_model`` switches a chat's model and returns its reference.
    - ``jobs`` are those of one chat's place, or of all; ``job`` is None for one that is not there. ``is_signed`` and ``wake`` are for hooks
      that ``knows_hook`` knows; ``wake`` gives the event's id and whether it is new.
    - ``approve`` returns what to show; ``revoke`` is False for somebody who was not admitted by pairing.
    """

    version: str
    events: EventHub

    def health(self) -> HostHealth: ...

    def knows(self, address: Address) -> bool: ...

    def commands(self) -> Sequence[ChatCommand]: ...

    async def chats(self) -> Sequence[ChatRow]: ...

    async def messages(self, address: Address, *, before: str | None, limit: int) -> Sequence[ChatLogRow]: ...

    async def message(self, address: Address, message_id: str) -> ChatLogRow | None: ...

    async def post(self, address: Address, text: str, uploads: Sequence[Upload], *, attended: bool = True) -> str: ...

    async def send(self, address: Address, text: str, uploads: Sequence[Upload]) -> str: ...

    async def set_model(self, address: Address, reference: str) -> str: ...

    async def sessions(self, address: Address | None) -> Sequence[SessionSummary]: ...

    async def session(self, session_id: str) -> SessionDetail | None: ...

    async def export_session(self, session_id: str, form: ExportFormat) -> ExportedSession | None: ...

    async def import_session(self, address: Address, data: bytes) -> ImportedSession: ...

    async def check_session(self, session_id: str, *, repair: bool) -> CheckedSession | None: ...

    async def delete_session(self, session_id: str) -> bool: ...

    async def usage(self, place: Address | None, since: date) -> Sequence[UsageLine]: ...

    async def jobs(self, place: Address | None) -> Sequence[dict[str, Any]]: ...

    async def job(self, job_id: str) -> dict[str, Any] | None: ...

    async def make_job(self, address: Address, text: str) -> dict[str, Any]: ...

    async def act_on_job(self, job_id: str, action: Literal["run", "pause", "resume", "remove"]) -> str: ...

    def knows_hook(self, name: str) -> bool: ...

    def is_signed(self, name: str, body: bytes, signature: str) -> bool: ...

    async def wake(self, name: str, body: bytes, delivery: str) -> tuple[str, bool]: ...

    async def metrics(self) -> tuple[bytes, str] | None: ...

    async def access(self) -> AccessOverview: ...

    async def access_log(self, limit: int) -> list[AuditRecord]: ...

    async def approve(self, code: str, *, owner: bool) -> str: ...

    async def revoke(self, member_id: str) -> bool: ...
