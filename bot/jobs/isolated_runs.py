"""Runs in sessions of their own, beside what is going on in the chat."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from bot.conversations.runs import Runs
from bot.conversations.services import ConversationServices
from bot.conversations.turn import Turn
from bot.delivery.errands import Errands, within
from bot.delivery.inbox import StoredMessage
from bot.questions import ChatQuestions
from features.contracts.agent import Prompt
from features.contracts.chat import Address, ChatChannel, DueRun, OutboundMessage
from features.contracts.errors import PumiceError, UserMustAct
from features.contracts.jobs import JobOrigin
from features.contracts.sessions import SessionStore
from features.extensions import ExtensionLease

__all__ = ["JOB_CHANNEL", "IsolatedRuns"]

log = logging.getLogger("pumice.jobs")

JOB_CHANNEL = "job"
"""The channel of the address under which an isolated run waits in the inbox; its session has that address as its scope."""
_KEPT_SESSIONS = 5
_ONE_RUN = "This session is there for one scheduled run and ends with it."
_PARKING_S = 1.0
_MOST_TAKEN_UP = 1000


class IsolatedRuns:
    """Each run gets a fresh session with the chat's tools and settings; its answer goes into the chat. The last five of a job are kept."""

    def __init__(self, services: ConversationServices, store: SessionStore, channels: Mapping[str, ChatChannel]) -> None:
        self._services = services
        self._store = store
        self._channels = channels
        self._errands = Errands(log, services.ids)
        self._active: dict[str, tuple[DueRun, Runs]] = {}  # by session
        self._leaving = False

    def begin(self, stored: StoredMessage) -> None:
        """Start a run that is on the disk."""
        if not self._leaving:
            self._errands.start(self._carry(stored), name=f"isolated {stored.message.address}")

    def origin(self, session_id: str) -> JobOrigin | None:
        """Who is behind what is said in a session; None for one that is not at work here."""
        active = self._active.get(session_id)
        if active is None:
            return None
        run, _ = active
        return JobOrigin(by=run.by, owner=run.owner, group=run.group, depth=run.depth + 1)

    async def stop(self, which: Callable[[DueRun], bool]) -> bool:
        """Stop runs that are going on; whether there were any."""
        active = [runs for run, runs in self._active.values() if which(run)]
        await asyncio.gather(*(runs.halt() for runs in active))
        return bool(active)

    async def recover(self) -> None:
        """Take up the runs that waited when an earlier process ended."""
        waiting, _ = await self._services.inbox.waiting_addresses()
        for address in waiting:
            if address.channel == JOB_CHANNEL:
                for stored in await self._services.inbox.waiting(address, after=0, limit=_MOST_TAKEN_UP):
                    if stored.message.run is not None and stored.message.run.address.channel in self._channels:
                        self.begin(stored)

    async def _carry(self, stored: StoredMessage) -> None:
        run = stored.message.run
        assert run is not None
        try:
            await self._run(stored, run)
        except PumiceError as error:
            await self._services.outbox.post(run.address, OutboundMessage(text=str(error)), answers=(stored.id,))
            self._services.ended((stored.id,), "failed", str(error))

    async def _run(self, stored: StoredMessage, run: DueRun) -> None:
        services = self._services
        over = asyncio.Event()
        questions = services.questions.chat(run.address, noted=lambda lines: runs.note(lines))
        runs = Runs(run.address, services, self._errands, questions, ended=lambda _: over.set())
        await self._forget_old(_scope(run))
        lease = await services.opener.extensions.take(run.address.place)
        try:
            await self._run_in(stored, run, runs, questions, lease, over)
        finally:
            lease.close()

    async def _run_in(
        self, stored: StoredMessage, run: DueRun, runs: Runs, questions: ChatQuestions, lease: ExtensionLease, over: asyncio.Event
    ) -> None:
        settings = await self._services.settings.get(run.address.place)
        session = await self._services.opener.open(
            run.address, settings, runs.books, questions=questions, host=_OneRun(), extensions=lease.specs,
            new=True, name=f"Job {run.job_id}: {run.title}", scope=_scope(run),
        )  # fmt: skip
        self._active[session.id] = (run, runs)
        try:
            session.subscribe(runs.on_event)
            if not self._leaving:
                runs.start(session, Turn([stored]), settings)
                await over.wait()
        finally:
            del self._active[session.id]
            await session.close()

    async def _forget_old(self, scope: str) -> None:
        for summary in (await self._store.list(scope, limit=1000))[_KEPT_SESSIONS - 1 :]:
            await self._store.delete(summary.id)

    # The end

    async def settle(self, seconds: float) -> None:
        """Let runs that are going on end by themselves for so long; then cut them, which the next start tells."""
        self._leaving = True
        if not await within(self._services.clock, seconds, self._settled()):
            await within(self._services.clock, _PARKING_S, self._park())

    async def _settled(self) -> None:
        await asyncio.gather(*(runs.settled() for _, runs in self._active.values()))

    async def _park(self) -> None:
        for _, runs in self._active.values():
            runs.books.parked = True
        await asyncio.gather(*(runs.halt() for _, runs in self._active.values()))

    async def close(self) -> None:
        self._leaving = True
        for _, runs in self._active.values():
            runs.books.parked = True
        await self._errands.close()


class _OneRun:
    """Implements ``SessionHost``: the session is there for its one run and no other."""

    async def prompt(self, prompt: Prompt, *, session_id: str, extension: str, id: str) -> None:
        raise UserMustAct(_ONE_RUN)

    async def new_session(self, name: str) -> str:
        raise UserMustAct(_ONE_RUN)

    async def switch_session(self, session_id: str) -> None:
        raise UserMustAct(_ONE_RUN)

    async def reload(self) -> None:
        raise UserMustAct(_ONE_RUN)


def _scope(run: DueRun) -> str:
    return str(Address(JOB_CHANNEL, run.job_id))
