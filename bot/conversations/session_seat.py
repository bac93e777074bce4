"""The session that an address talks in."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

from bot.place_extensions import PlaceExtensions
from bot.settings import ChatSettings, SettingsStore
from features.agent import AgentSession, AgentSessionFactory, AgentSessionOptions
from features.contracts.agent import EntryJournal, Spending
from features.contracts.chat import Address, ChatSender, OutboundMessage
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct
from features.contracts.events import SessionEvent
from features.contracts.extensions import ExtensionSpec
from features.contracts.sessions import SessionStore, SessionSummary
from features.contracts.tools import ToolContext
from features.extensions import ExtensionLease, LoadedExtension
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
        built_in: the host's own extensions, which every session has.
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
        extensions: PlaceExtensions,
        built_in: Sequence[ExtensionSpec] = (),
        roots: Sequence[Path] = (),
        spending: Callable[[Address, str], Spending] | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.extensions = extensions
        self._factory = factory
        self._workspaces = workspaces
        self._clock = clock
        self._tools = tools
        self._post = post
        self._built_in = tuple(built_in)
        self._roots = tuple(roots)
        self._spending = spending

    async def open(
        self,
        address: Address,
        settings: ChatSettings,
        journal: EntryJournal,
        *,
        extensions: tuple[ExtensionSpec, ...] = (),
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
                spare_model=self.settings.defaults.model,
                thinking=settings.thinking,
                journal=journal,
                extensions=(*self._built_in, *extensions),
                spending=None if self._spending is None else self._spending(place, settings.time_zone),
            )
        )

    def _ready_folder(self, place: Address) -> Path:
        """The place's folder, without the full outputs that nobody will ask for any more."""
        folder = self._workspaces.folder(place)
        if deleted := self._workspaces.prune_scratch(place, self._clock.now() - _FULL_OUTPUTS_STAY):
            log.info("old full outputs deleted", extra={"facts": {"place": str(place), "files": deleted}})
        return folder


class SessionSeat:
    """Holds at most one open session; opening and changing take turns.

    Args:
        opened: called with each session that takes the seat, and with the extensions of its place that wait or fail.
        heard: called with every event of the session in the seat.
    """

    def __init__(
        self,
        address: Address,
        opener: SessionOpener,
        journal: EntryJournal,
        *,
        opened: Callable[[AgentSession, Sequence[LoadedExtension]], None],
        heard: Callable[[SessionEvent], None],
    ) -> None:
        self.current: AgentSession | None = None
        self._address = address
        self._opener = opener
        self._journal = journal
        self._opened = opened
        self._heard = heard
        self._lease: ExtensionLease | None = None
        self._made_for: tuple[str, int] | None = None
        self._changing = asyncio.Lock()

    async def get(self) -> AgentSession:
        """The session of the address, opened if it is not; again, if the place's zone or its extensions have changed and nothing is
        going on."""
        return await self._get(tell=True)

    async def start_new(self, name: str) -> AgentSession:
        async with self._changing:
            return await self._open(await self._opener.settings.get(self._address.place), new=True, name=name)

    async def switch(self, written: str) -> AgentSession:
        """Take the session that ``find`` finds."""
        async with self._changing:
            summary = await self.find(written)
            settings = await self._opener.settings.get(self._address.place)
            session = await self._open(settings, session_id=summary.id)
            await self._opener.store.make_current(str(self._address), summary.id)
            return session

    async def extensions(self) -> tuple[LoadedExtension, ...]:
        """Those that the session has and how they fare in it, after another look at the place's folder."""
        if self._lease is not None and await self._opener.extensions.is_stale(self._address.place, self._lease):
            self._made_for = None
        session = await self._get(tell=False)
        states = session.extensions.states
        return tuple(_as_it_fares(extension, states) for extension in (self._lease.all if self._lease is not None else ()))

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

    async def _get(self, *, tell: bool) -> AgentSession:
        """
        Args:
            tell: whether the chat hears of extensions of its own that do not run.
        """
        async with self._changing:
            settings = await self._opener.settings.get(self._address.place)
            if self.current is not None:
                if self._made_for == self._wanted(settings) or self.current.running or self.current.compacting:
                    return self.current
                await self._leave()  # first, so that an extension's end comes before its new beginning
            return await self._open(settings, tell=tell)

    async def _open(
        self, settings: ChatSettings, *, session_id: str | None = None, new: bool = False, name: str = "", tell: bool = True
    ) -> AgentSession:
        wanted = self._wanted(settings)  # read first: what changes meanwhile is seen next time
        lease = await self._opener.extensions.take(self._address.place)
        try:
            session = await self._opener.open(
                self._address, settings, self._journal, extensions=lease.specs, session_id=session_id, new=new, name=name
            )
        except BaseException:
            lease.close()
            raise
        await self._leave()
        self.current, self._lease, self._made_for = session, lease, wanted
        session.subscribe(self._heard)
        self._opened(session, lease.news if tell else ())
        return session

    def _wanted(self, settings: ChatSettings) -> tuple[str, int]:
        """What a session has to be opened again for: the place's zone and the version of its extensions."""
        return settings.time_zone, self._opener.extensions.version(self._address.place)

    async def _leave(self) -> None:
        session, self.current = self.current, None
        lease, self._lease = self._lease, None
        if session is not None:
            await session.close()
        if lease is not None:
            lease.close()

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


def _as_it_fares(extension: LoadedExtension, states: Mapping[str, str]) -> LoadedExtension:
    """What was loaded well may have failed since: while it was activated in this session, or three times in a row."""
    state = states.get(extension.name, "active")
    if extension.state != "active" or state == "active":
        return extension
    return msgspec.structs.replace(extension, state="failed", reason=state.removeprefix("failed: "))
