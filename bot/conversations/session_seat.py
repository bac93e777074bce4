"""The session that an address talks in."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

from bot.settings import ChatSettings, SettingsStore
from features.agent import AgentSession, AgentSessionFactory, AgentSessionOptions
from features.contracts.agent import EntryJournal, Spending
from features.contracts.chat import Address, ChatSender, OutboundMessage
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct
from features.contracts.events import SessionEvent
from features.contracts.sessions import SessionStore, SessionSummary
from features.contracts.tools import ToolContext
from features.tools import ToolRegistry
from workspaces import Workspaces

__all__ = ["SessionOpener", "SessionSeat"]

log = logging.getLogger("pumice.conversations")

_FULL_OUTPUTS_STAY = timedelta(days=14)
"""Longer than an answer may wait for its platform: what ``send`` handed over is among them."""
_MOST_LISTED = 1000
_SHORTEST_PREFIX = 4


class SessionOpener:
    """Opens sessions with all that belongs to their place.

    Args:
        tools: makes the tools of one session; what it hands to ``send`` goes into that session's chat.
        post: puts a message into the outbox.
        roots: folders beside the workspace that file tools may reach.
        spending: what a place may spend, by its time zone; None for places without a budget whose summaries are not counted.
    """

    def __init__(
        self,
        factory: AgentSessionFactory,
        store: SessionStore,
        settings: SettingsStore,
        workspaces: Workspaces,
        *,
        clock: Clock,
        tools: Callable[[ChatSender], ToolRegistry],
        post: Callable[[Address, OutboundMessage], Awaitable[object]],
        roots: Sequence[Path] = (),
        spending: Callable[[Address, str], Spending] | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self._factory = factory
        self._workspaces = workspaces
        self._clock = clock
        self._tools = tools
        self._post = post
        self._roots = tuple(roots)
        self._spending = spending

    async def open(
        self,
        address: Address,
        settings: ChatSettings,
        journal: EntryJournal,
        *,
        session_id: str | None = None,
        new: bool = False,
        name: str = "",
    ) -> AgentSession:
        """The session ``session_id`` of an address, its current one, or a new one.

        Raises:
            KeyError: there is no such session.
            UserMustAct: the model of the settings is needed and not to be had.
        """
        place = address.place

        async def send(message: OutboundMessage) -> None:
            await self._post(address, message)

        folder = await asyncio.to_thread(self._ready_folder, place)
        context = ToolContext(
            address=str(address),
            session_id="",
            workspace=folder,
            scratch=self._workspaces.scratch(place),
            roots=self._roots,
            time_zone=settings.time_zone,
        )
        return await self._factory.create(
            AgentSessionOptions(
                scope=str(address),
                session_id=session_id,
                new=new,
                name=name,
                tools=self._tools(send),
                tool_context=context,
                chat=f"You talk in the chat {address}, through {address.channel}.",
                model=settings.model,
                thinking=settings.thinking,
                journal=journal,
                spending=None if self._spending is None else self._spending(place, settings.time_zone),
            )
        )

    def scratch(self, place: Address) -> Path:
        """The folder of a place for files that nobody will ask for much later."""
        return self._workspaces.scratch(place)

    def _ready_folder(self, place: Address) -> Path:
        """The place's folder, without the full outputs that nobody will ask for any more."""
        folder = self._workspaces.folder(place)
        if deleted := self._workspaces.prune_scratch(place, self._clock.now() - _FULL_OUTPUTS_STAY):
            log.info("old full outputs deleted", extra={"facts": {"place": str(place), "files": deleted}})
        return folder


class SessionSeat:
    """Holds at most one open session; opening and changing take turns.

    Args:
        opened: called with each session that takes the seat.
        heard: called with every event of the session in the seat.
    """

    def __init__(
        self,
        address: Address,
        opener: SessionOpener,
        journal: EntryJournal,
        *,
        opened: Callable[[AgentSession], None],
        heard: Callable[[SessionEvent], None],
    ) -> None:
        self.current: AgentSession | None = None
        self._address = address
        self._opener = opener
        self._journal = journal
        self._opened = opened
        self._heard = heard
        self._zone = ""
        self._changing = asyncio.Lock()

    async def get(self) -> AgentSession:
        """The session of the address, opened if it is not; again, if the place's zone has changed and nothing is going on."""
        async with self._changing:
            settings = await self._opener.settings.get(self._address.place)
            if self.current is not None and (settings.time_zone == self._zone or self.current.running or self.current.compacting):
                return self.current
            return await self._take(await self._opener.open(self._address, settings, self._journal), settings)

    async def start_new(self, name: str) -> AgentSession:
        async with self._changing:
            settings = await self._opener.settings.get(self._address.place)
            return await self._take(await self._opener.open(self._address, settings, self._journal, new=True, name=name), settings)

    async def switch(self, written: str) -> AgentSession:
        """Take the session that ``find`` finds."""
        async with self._changing:
            summary = await self.find(written)
            settings = await self._opener.settings.get(self._address.place)
            session = await self._opener.open(self._address, settings, self._journal, session_id=summary.id)
            await self._opener.store.make_current(str(self._address), summary.id)
            return await self._take(session, settings)

    async def delete(self, session_id: str) -> None:
        """Delete a session that ``find`` found, for good."""
        async with self._changing:
            if self.current is not None and self.current.id == session_id:
                await self._leave()
            await self._opener.store.delete(session_id)

    async def list(self) -> list[SessionSummary]:
        return await self._opener.store.list(str(self._address), limit=_MOST_LISTED)

    async def close(self) -> None:
        async with self._changing:
            await self._leave()

    async def _take(self, session: AgentSession, settings: ChatSettings) -> AgentSession:
        await self._leave()
        self.current = session
        self._zone = settings.time_zone
        session.subscribe(self._heard)
        self._opened(session)
        return session

    async def _leave(self) -> None:
        session, self.current = self.current, None
        if session is not None:
            await session.close()

    async def find(self, written: str) -> SessionSummary:
        """The session of this address that an id or the beginning of one names.

        Raises:
            UserMustAct: there is none, or more than one.
        """
        known = await self._opener.store.summary(written.strip())  # a whole id also finds what is too old to be listed
        if known is not None and known.scope == str(self._address):
            return known
        wanted = written.strip().lower()
        sessions = await self.list()
        exact = [summary for summary in sessions if summary.id.lower() == wanted]
        found = exact or [summary for summary in sessions if len(wanted) >= _SHORTEST_PREFIX and summary.id.lower().startswith(wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserMustAct(f"{len(found)} sessions begin with {wanted}; write a few more characters of the id.")
        raise UserMustAct("There is no such session here. /sessions lists them.")
