"""The host as its HTTP side sees it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

import msgspec

from bot.access import Access, AuditRecord
from bot.conversations import Conversations
from bot.delivery import Inbox, Outbox, StoredMessage
from bot.delivery.chat_log import ChatLog, LoggedMessage, logged_delivery, logged_message
from bot.delivery.delivery import Delivery
from bot.http.chat_log import ChatLogFile, ChatLogRow
from bot.http.events import EventHub
from bot.http.host_view import AccessMember, AccessOverview, ChatRow, HostHealth, PairingRequest, SessionDetail, Upload, UsageLine
from bot.jobs.webhooks import Webhooks
from bot.version import VERSION
from channels.web import UploadStore
from features.contracts.chat import Address, Attachment, ChatChannel, ChatCommand, InboundMessage, OutboundFile, OutboundMessage, Person
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct
from features.contracts.jobs import JobOrigin
from features.contracts.session_transfer import CheckedSession, ExportedSession, ExportFormat, ImportedSession
from features.contracts.sessions import SessionStore, SessionSummary
from features.scheduler import JobScheduler
from features.sessions import SessionTransfer
from features.usage import UsageLedger

__all__ = ["HostDesk", "HostState"]

HostState = Literal["starting", "running", "stopping"]

_OWNER = Person(id="web:owner", name="Owner")
_KEY = "http:"
_MOST_CHATS = 500
_MOST_SESSIONS = 10_000
_LONGEST_TITLE = 80


class HostDesk:
    """Implements ``HostView`` over the parts of a running host."""

    version = VERSION

    def __init__(
        self,
        *,
        events: EventHub,
        channels: Mapping[str, ChatChannel],
        conversations: Conversations,
        inbox: Inbox,
        outbox: Outbox,
        log: ChatLog,
        store: SessionStore,
        transfer: SessionTransfer,
        usage: UsageLedger,
        access: Access,
        uploads: UploadStore,
        commands: Callable[[], Sequence[ChatCommand]],
        scheduler: JobScheduler,
        webhooks: Webhooks,
        skill_commands: Callable[[], Sequence[ChatCommand]],
        metrics: Callable[[], Awaitable[tuple[bytes, str]]] | None,
        state: Callable[[], HostState],
        clock: Clock,
        ids: Callable[[], str],
    ) -> None:
        self.events = events
        self._channels = channels
        self._conversations = conversations
        self._inbox = inbox
        self._outbox = outbox
        self._log = log
        self._store = store
        self._transfer = transfer
        self._usage = usage
        self._access = access
        self._metrics = metrics
        self._uploads = uploads
        self._commands = commands
        self._scheduler = scheduler
        self._webhooks = webhooks
        self._skill_commands = skill_commands
        self._state = state
        self._clock = clock
        self._ids = ids

    async def metrics(self) -> tuple[bytes, str] | None:
        return None if self._metrics is None else await self._metrics()

    def health(self) -> HostHealth:
        return HostHealth(state=self._state(), channels={name: channel.health() for name, channel in self._channels.items()})

    def knows(self, address: Address) -> bool:
        return address.channel in self._channels

    def commands(self) -> Sequence[ChatCommand]:
        return [*self._commands(), *self._skill_commands()]

    async def chats(self) -> Sequence[ChatRow]:
        return [
            ChatRow(address=str(last.address), title=_title(last.text), last_at=last.at, running=self._is_running(last.address))
            for last in await self._log.chats(limit=_MOST_CHATS)
        ]

    async def messages(self, address: Address, *, before: str | None, limit: int) -> Sequence[ChatLogRow]:
        return [self._row(message) for message in await self._log.messages(address, before=before, limit=limit)]

    async def message(self, address: Address, message_id: str) -> ChatLogRow | None:
        message = await self._log.message(address, message_id)
        return None if message is None else self._row(message)

    async def post(self, address: Address, text: str, uploads: Sequence[Upload], *, attended: bool = True) -> str:
        message = InboundMessage(
            key=f"{_KEY}{self._ids()}",
            address=address,
            sender=_OWNER,
            text=text,
            sent_at=self._clock.now(),
            attachments=tuple([await self._keep(upload) for upload in uploads]),
            attended=attended,
        )
        taken = await self._inbox.take([message])
        if not taken:
            raise UserMustAct("This host does not let its web page talk. Look at the access section of its configuration.")
        return taken[0].id

    async def send(self, address: Address, text: str, uploads: Sequence[Upload]) -> str:
        kept = [await self._keep(upload) for upload in uploads]
        files = tuple(OutboundFile(path=self._uploads.path(attachment), name=attachment.name) for attachment in kept)
        return await self._outbox.post(address, OutboundMessage(text=text, files=files))

    async def set_model(self, address: Address, reference: str) -> str:
        conversation = self._conversations.get(address)
        await conversation.set_model(reference)
        return (await conversation.session()).model.reference

    async def sessions(self, address: Address | None) -> Sequence[SessionSummary]:
        return await self._store.list(None if address is None else str(address), limit=_MOST_SESSIONS)

    async def session(self, session_id: str) -> SessionDetail | None:
        summary = await self._store.summary(session_id)
        if summary is None:
            return None
        header, entries, leaf = await self._store.load(session_id)
        return SessionDetail(summary=summary, header=header, entries=entries, leaf_id=leaf)

    async def export_session(self, session_id: str, form: ExportFormat) -> ExportedSession | None:
        try:
            return await self._transfer.export(session_id, form)
        except KeyError:
            return None

    async def import_session(self, address: Address, data: bytes) -> ImportedSession:
        return await self._transfer.import_file(data, str(address))

    async def check_session(self, session_id: str, *, repair: bool) -> CheckedSession | None:
        try:
            return await self._transfer.check(session_id, repair=repair)
        except KeyError:
            return None

    async def delete_session(self, session_id: str) -> bool:
        summary = await self._store.summary(session_id)
        if summary is None:
            return False
        address = Address.parse(summary.scope)
        if self.knows(address):
            await self._conversations.get(address).moves.delete(session_id)
            return True
        return await self._store.delete(session_id)

    async def usage(self, place: Address | None, since: date) -> Sequence[UsageLine]:
        places = await self._log.places() if place is None else [str(place.place)]
        return [UsageLine(place=name, **msgspec.structs.asdict(row)) for name in places for row in await self._usage.totals(name, since)]

    async def jobs(self, place: Address | None) -> Sequence[dict[str, Any]]:
        return await self._scheduler.shown(place)

    async def job(self, job_id: str) -> dict[str, Any] | None:
        try:
            return await self._scheduler.shown_job(job_id)
        except UserMustAct:
            return None

    async def make_job(self, address: Address, text: str) -> dict[str, Any]:
        return await self._scheduler.make(address, text, JobOrigin(by=_OWNER.id, owner=True))

    async def act_on_job(self, job_id: str, action: Literal["run", "pause", "resume", "remove"]) -> str:
        return await self._scheduler.commands.act(job_id, action)

    def knows_hook(self, name: str) -> bool:
        return self._webhooks.knows(name)

    def is_signed(self, name: str, body: bytes, signature: str) -> bool:
        return self._webhooks.is_signed(name, body, signature)

    async def wake(self, name: str, body: bytes, delivery: str) -> tuple[str, bool]:
        return await self._webhooks.take(name, body, delivery)

    async def access(self) -> AccessOverview:
        members = [
            AccessMember(
                id=member.id,
                name=member.name,
                owner=member.owner,
                source="configuration" if member.source == "configuration" else "pairing",
            )
            for member in await self._access.members()
        ]
        # Codes are known to those who hold them alone; here is only who waits.
        pending = [PairingRequest(id=code.person, name=code.name, code="", expires_at=code.expires_at) for code in self._access.pending()]
        return AccessOverview(members=members, pending=pending)

    async def approve(self, code: str, *, owner: bool) -> str:
        return await self._access.approve(code, _OWNER.id, owner=owner)

    async def revoke(self, member_id: str) -> bool:
        return await self._access.revoke(member_id, _OWNER.id)

    async def access_log(self, limit: int) -> list[AuditRecord]:
        return await self._access.log(limit)

    # What the host tells those who watch

    def received(self, stored: StoredMessage) -> None:
        if not stored.message.key.startswith(_KEY) and stored.message.kind not in ("edit", "extension"):
            self.events.received(stored.message.address, self._row(logged_message(stored)))

    def delivered(self, delivery: Delivery) -> None:
        self.events.delivered(delivery.address, self._row(logged_delivery(delivery)))

    def changed(self, delivery: Delivery) -> None:
        self.events.changed(delivery.address, self._row(logged_delivery(delivery)))

    def _is_running(self, address: Address) -> bool:
        conversation = self._conversations.find(address)
        return conversation is not None and conversation.status().running

    async def _keep(self, upload: Upload) -> Attachment:
        return await self._uploads.keep(upload.data, name=upload.name, mime_type=upload.mime_type)

    def _upload_path(self, attachment: Attachment) -> Path | None:
        try:
            return self._uploads.path(attachment) if self._uploads.owns(attachment) else None
        except UserMustAct:  # it was looked after for a week and is gone
            return None

    def _row(self, message: LoggedMessage) -> ChatLogRow:
        files = [ChatLogFile(path=file.path, name=file.name) for file in message.files]
        named: list[str] = []
        for attachment in message.attachments:
            path = self._upload_path(attachment)
            if path is not None:
                files.append(ChatLogFile(path=path, name=attachment.name))
            else:
                named.append(f"[{attachment.name}]")
        return ChatLogRow(
            id=message.id,
            role=message.role,
            text="\n".join(part for part in (message.text, *named) if part),
            at=message.at,
            answers=message.answers,
            buttons=message.buttons,
            files=tuple(files),
            outcome=message.outcome,
        )


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"
