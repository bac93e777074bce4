"""A host in memory, for everything that stands on ``HostView``."""

import hmac
from collections.abc import Callable, Sequence
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any, Literal

import msgspec

from bot.access import AuditRecord
from bot.http.chat_log import ChatLogFile, ChatLogRow, Outcome
from bot.http.events import EventHub
from bot.http.host_view import AccessMember, AccessOverview, ChatRow, HostHealth, PairingRequest, SessionDetail, Upload, UsageLine
from features.contracts.chat import Address, Button, ChannelHealth, ChatCommand
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct
from features.contracts.events import SessionEvent
from features.contracts.session_transfer import CheckedSession, ExportedSession, ExportFormat, ImportedSession
from features.contracts.sessions import SessionSummary
from features.sessions import MemorySessionStore, SessionTransfer

__all__ = ["MemoryHost"]


class MemoryHost:
    """Implements ``HostView``. ``reply`` is called for each accepted message, to answer it with ``deliver`` and ``publish``."""

    def __init__(self, clock: Clock, folder: Path, *, events: EventHub | None = None) -> None:
        self.version = "1.2.3"
        self.clock = clock
        self.folder = folder
        self.events = events or EventHub(clock)
        self.state: Literal["starting", "running", "stopping"] = "running"
        self.channels: dict[str, ChannelHealth] = {"web": ChannelHealth(state="working"), "telegram": ChannelHealth(state="working")}
        self.reply: Callable[[Address, ChatLogRow], None] = lambda address, row: None
        self.rows: dict[Address, list[ChatLogRow]] = {}
        self.uploads: list[Upload] = []
        self.attended: list[bool] = []
        self.models: dict[Address, str] = {}
        self.kept_sessions: dict[str, SessionDetail] = {}
        self.usage_lines: list[UsageLine] = []
        self.members: dict[str, AccessMember] = {}
        self.pending: list[PairingRequest] = []
        self.exposition: tuple[bytes, str] | None = (b"pumice_runs_total 1.0\n", "text/plain; version=1.0.0; charset=utf-8")
        self.audit: list[AuditRecord] = []
        self.known_jobs: dict[str, dict[str, Any]] = {}
        self.woken: list[tuple[str, bytes, str]] = []
        self.hook_secret = "hook-secret-1"  # noqa: S105 - of a test
        self.store = MemorySessionStore()
        self._numbers = count(1)
        self.transfer = SessionTransfer(
            self.store, originals=folder / "damaged", clock=clock, ids=lambda: f"session-{next(self._numbers):04d}"
        )

    def publish(self, address: Address, *events: SessionEvent) -> None:
        for event in events:
            self.events.publish(address, event)

    def deliver(
        self,
        address: Address,
        text: str,
        *,
        answers: tuple[str, ...] = (),
        buttons: tuple[tuple[Button, ...], ...] = (),
        files: tuple[ChatLogFile, ...] = (),
        outcome: Outcome = "success",
    ) -> ChatLogRow:
        row = self._row(address, "assistant", text, answers=answers, buttons=buttons, files=files, outcome=outcome)
        self.events.delivered(address, row)
        return row

    def health(self) -> HostHealth:
        return HostHealth(state=self.state, channels=self.channels)

    def knows(self, address: Address) -> bool:
        return address.channel in self.channels or address.channel == "console"

    def commands(self) -> Sequence[ChatCommand]:
        return [
            ChatCommand(name="help", description="What can be said"),
            ChatCommand(name="new", description="A fresh session"),
            ChatCommand(name="status", description="How things stand"),
            ChatCommand(name="stop", description="Stop the run"),
        ]

    async def chats(self) -> Sequence[ChatRow]:
        return [ChatRow(address=str(address), title=rows[-1].text[:60], last_at=rows[-1].at) for address, rows in self.rows.items()]

    async def messages(self, address: Address, *, before: str | None, limit: int) -> Sequence[ChatLogRow]:
        rows = [row for row in self.rows.get(address, []) if before is None or row.id < before]
        return rows[-limit:]

    async def message(self, address: Address, message_id: str) -> ChatLogRow | None:
        return next((row for row in self.rows.get(address, []) if row.id == message_id), None)

    def change(self, address: Address, row: ChatLogRow, text: str) -> None:
        """A delivered message reads otherwise now, and has no buttons."""
        changed = msgspec.structs.replace(row, text=text, buttons=())
        self.rows[address] = [changed if each.id == row.id else each for each in self.rows[address]]
        self.events.changed(address, changed)

    async def post(self, address: Address, text: str, uploads: Sequence[Upload], *, attended: bool = True) -> str:
        self.uploads += uploads
        self.attended.append(attended)
        row = self._row(address, "user", text)
        self.reply(address, row)
        return row.id

    async def send(self, address: Address, text: str, uploads: Sequence[Upload]) -> str:
        files = []
        for upload in uploads:
            path = self.folder / f"sent-{next(self._numbers)}"
            path.write_bytes(upload.data)
            files.append(ChatLogFile(path=path, name=upload.name))
        return self.deliver(address, text, files=tuple(files)).id

    async def set_model(self, address: Address, reference: str) -> str:
        if "/" not in reference:
            raise UserMustAct(f"There is no model {reference!r}. Did you mean offline/assistant?")
        self.models[address] = reference
        return reference

    async def sessions(self, address: Address | None) -> Sequence[SessionSummary]:
        found = [detail.summary for detail in self.kept_sessions.values()]
        return [summary for summary in found if address is None or summary.scope == str(address)]

    async def session(self, session_id: str) -> SessionDetail | None:
        return self.kept_sessions.get(session_id)

    async def export_session(self, session_id: str, form: ExportFormat) -> ExportedSession | None:
        try:
            return await self.transfer.export(session_id, form)
        except KeyError:
            return None

    async def import_session(self, address: Address, data: bytes) -> ImportedSession:
        imported = await self.transfer.import_file(data, str(address))
        summary = await self.store.summary(imported.id)
        assert summary is not None
        header, entries, leaf = await self.store.load(imported.id)
        self.kept_sessions[imported.id] = SessionDetail(summary=summary, header=header, entries=entries, leaf_id=leaf)
        return imported

    async def check_session(self, session_id: str, *, repair: bool) -> CheckedSession | None:
        try:
            return await self.transfer.check(session_id, repair=repair)
        except KeyError:
            return None

    async def delete_session(self, session_id: str) -> bool:
        return self.kept_sessions.pop(session_id, None) is not None

    async def usage(self, place: Address | None, since: date) -> Sequence[UsageLine]:
        return [line for line in self.usage_lines if line.day >= since and (place is None or line.place == str(place))]

    async def jobs(self, place: Address | None) -> Sequence[dict[str, Any]]:
        return [job for job in self.known_jobs.values() if place is None or job["chat"] == str(place)]

    async def job(self, job_id: str) -> dict[str, Any] | None:
        return self.known_jobs.get(job_id)

    async def make_job(self, address: Address, text: str) -> dict[str, Any]:
        job = {"id": str(next(self._numbers)), "chat": str(address), "prompt": text, "state": "active"}
        self.known_jobs[job["id"]] = job
        return job

    async def act_on_job(self, job_id: str, action: Literal["run", "pause", "resume", "remove"]) -> str:
        if action == "remove":
            del self.known_jobs[job_id]
        return f"{action} {job_id}"

    def knows_hook(self, name: str) -> bool:
        return name == "builds"

    def is_signed(self, name: str, body: bytes, signature: str) -> bool:
        return hmac.compare_digest(hmac.new(self.hook_secret.encode(), body, "sha256").hexdigest(), signature)

    async def wake(self, name: str, body: bytes, delivery: str) -> tuple[str, bool]:
        new = not delivery or all(other != delivery for _, _, other in self.woken)
        self.woken.append((name, body, delivery))
        return str(len(self.woken)), new

    async def access(self) -> AccessOverview:
        return AccessOverview(members=list(self.members.values()), pending=self.pending)

    async def metrics(self) -> tuple[bytes, str] | None:
        return self.exposition

    async def access_log(self, limit: int) -> list[AuditRecord]:
        return self.audit[:limit]

    async def approve(self, code: str, *, owner: bool) -> str:
        asked = next((request for request in self.pending if request.code == code), None)
        if asked is None:
            raise UserMustAct(f"No pairing waits under the code {code!r}.")
        self.pending.remove(asked)
        self.members[asked.id] = AccessMember(id=asked.id, name=asked.name, owner=owner)
        return f"{asked.name} may talk now."

    async def revoke(self, member_id: str) -> bool:
        return self.members.pop(member_id, None) is not None

    def _row(
        self,
        address: Address,
        role: Literal["user", "assistant"],
        text: str,
        *,
        answers: tuple[str, ...] = (),
        buttons: tuple[tuple[Button, ...], ...] = (),
        files: tuple[ChatLogFile, ...] = (),
        outcome: Outcome = "success",
    ) -> ChatLogRow:
        row = ChatLogRow(
            id=f"{next(self._numbers):08d}", role=role, text=text, at=self.clock.now(),
            answers=answers, buttons=buttons, files=files, outcome=outcome,
        )  # fmt: skip
        self.rows.setdefault(address, []).append(row)
        return row
