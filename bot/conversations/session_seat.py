"""The session that an address talks in."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal

import msgspec

from bot.place_extensions import PlaceExtensions
from bot.questions import ChatQuestions
from bot.settings import ChatSettings, SettingsStore
from features.agent import AgentSession, AgentSessionFactory, AgentSessionOptions
from features.contracts.agent import EntryJournal, SessionHost, Spending
from features.contracts.chat import Address, ChatCommand, ChatSender, OutboundMessage
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct
from features.contracts.events import SessionEvent
from features.contracts.extensions import ExtensionSpec
from features.contracts.processes import ProcessRunner
from features.contracts.sessions import SessionStore, SessionSummary
from features.contracts.tools import ToolContext
from features.extensions import ExtensionLease, LoadedExtension
from features.memory import Memory
from features.skills import SkillCatalog
from features.tools import ToolRegistry
from workspaces import Workspaces

__all__ = ["SessionOpener", "SessionSeat"]

log = logging.getLogger("pumice.conversations")

_FULL_OUTPUTS_STAY = timedelta(days=14)
"""Longer than an answer may wait for its platform: what ``send`` handed over is among them."""
_MOST_LISTED = 1000
_OPENED_AT_ONCE = 8
_TURN_WITHIN_S = 5.0
_SHORTEST_PREFIX = 4


class SessionOpener:
    """Opens sessions with all that belongs to their place.

    Args:
        tools: makes the tools of one session of a place; what it hands to ``send`` goes into that session's chat.
        post: puts a message into the outbox.
        processes: starts what extensions start; None where nothing may be.
        host_commands: names that no extension's command can have.
        built_in: the host's own extensions, which every session has.
        roots: folders beside the workspace that file tools may reach.
        spending: what a place may spend, by its time zone; None for places without a budget whose summaries are not counted.
        instructions: a file of instructions for all chats.
    """

    def __init__(
        self,
        factory: AgentSessionFactory,
        store: SessionStore,
        settings: SettingsStore,
        workspaces: Workspaces,
        *,
        clock: Clock,
        tools: Callable[[Address, ChatSender], ToolRegistry],
        skills: SkillCatalog,
        memory: Memory,
        post: Callable[[Address, OutboundMessage], Awaitable[object]],
        extensions: PlaceExtensions,
        processes: ProcessRunner | None = None,
        host_commands: Sequence[str] = (),
        built_in: Sequence[ExtensionSpec] = (),
        roots: Sequence[Path] = (),
        spending: Callable[[Address, str], Spending] | None = None,
        instructions: Path | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.extensions = extensions
        self._factory = factory
        self._workspaces = workspaces
        self._clock = clock
        self._tools = tools
        self._skills = skills
        self._memory = memory
        self._instructions = instructions
        self._post = post
        self._processes = processes
        self._host_commands = tuple(host_commands)
        self._built_in = tuple(built_in)
        self._roots = tuple(roots)
        self._spending = spending
        self._opening = asyncio.Semaphore(_OPENED_AT_ONCE)

    async def open(
        self,
        address: Address,
        settings: ChatSettings,
        journal: EntryJournal,
        *,
        questions: ChatQuestions,
        host: SessionHost,
        began: Literal["startup", "new", "resume", "fork", "reload"] = "startup",
        extensions: tuple[ExtensionSpec, ...] = (),
        session_id: str | None = None,
        new: bool = False,
        name: str = "",
        scope: str = "",
    ) -> AgentSession:
        """The session ``session_id`` of an address, its current one, or a new one.

        Args:
            scope: whose session it is, where it is not the chat's own; it talks into the chat all the same.

        Raises:
            KeyError: there is no such session.
            UserMustAct: the model of the settings is needed and not to be had.
        """
        place = address.place

        async def send(message: OutboundMessage) -> None:
            await self._post(address, message)

        scope = scope or str(address)
        folder = await asyncio.to_thread(self._ready_folder, place)
        context = ToolContext(
            address=str(address),
            session_id="",
            workspace=folder,
            scratch=self._workspaces.scratch(place),
            roots=self._roots,
            readable=await self._skills.readable(),
            time_zone=settings.time_zone,
        )
        options = AgentSessionOptions(
            scope=scope,
            session_id=session_id,
            new=new,
            name=name,
            tools=self._tools(place, send),
            skills=self._skills.place(place),
            host_instructions=self._instructions,
            host_memory=self._memory.host_file(place),
            tool_context=context,
            chat=f"You talk in the chat {address}, through {address.channel}.",
            model=settings.model,
            spare_model=self.settings.defaults.model,
            thinking=settings.thinking,
            journal=journal,
            extensions=(*self._built_in, *extensions),
            ui=questions,
            keep_verbatim=questions.open_texts,
            host=host,
            began=began,
            processes=self._processes,
            host_commands=self._host_commands,
            spending=None if self._spending is None else self._spending(place, settings.time_zone),
        )
        return await self._create(options)

    async def _create(self, options: AgentSessionOptions) -> AgentSession:
        """A few at a time, for many at once would keep everything else waiting; and whoever has waited long goes on, for what holds the
        others up may be an extension that hangs."""
        if not self._opening.locked():
            async with self._opening:
                return await self._factory.create(options)
        turn = asyncio.ensure_future(self._opening.acquire())
        patience = asyncio.ensure_future(self._clock.sleep(_TURN_WITHIN_S))
        try:
            await asyncio.wait((turn, patience), return_when=asyncio.FIRST_COMPLETED)
            return await self._factory.create(options)
        finally:
            patience.cancel()
            if not turn.cancel():  # it came, now or while the session was being made
                self._opening.release()

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
        opened: called with each session that takes the seat, and with the extensions of its place that wait or fail.
        heard: called with every event of the session in the seat.
    """

    def __init__(
        self,
        address: Address,
        opener: SessionOpener,
        journal: EntryJournal,
        questions: ChatQuestions,
        host: SessionHost,
        *,
        opened: Callable[[AgentSession, Sequence[LoadedExtension]], None],
        heard: Callable[[SessionEvent], None],
    ) -> None:
        self.current: AgentSession | None = None
        self._address = address
        self._opener = opener
        self._journal = journal
        self._questions = questions
        self._host = host
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
            return await self._open(await self._opener.settings.get(self._address.place), new=True, name=name, began="new")

    async def reload(self) -> None:
        """Open the session again, with the extensions as they are now."""
        async with self._changing:
            self._made_for = None
        await self._get(tell=True)

    async def switch(self, written: str, *, began: Literal["resume", "fork"] = "resume") -> AgentSession:
        """Take the session that ``find`` finds."""
        async with self._changing:
            summary = await self.find(written)
            settings = await self._opener.settings.get(self._address.place)
            session = await self._open(settings, session_id=summary.id, began=began)
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
                await self._leave("delete")
            await self._opener.store.delete(session_id)

    async def list(self) -> list[SessionSummary]:
        return await self._opener.store.list(str(self._address), limit=_MOST_LISTED)

    async def close(self, reason: Literal["quit", "evict"]) -> None:
        async with self._changing:
            await self._leave(reason)

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
                await self._leave("reload")  # first, so that an extension's end comes before its new beginning
                return await self._open(settings, began="reload", tell=tell)
            return await self._open(settings, tell=tell)

    async def _open(
        self,
        settings: ChatSettings,
        *,
        began: Literal["startup", "new", "resume", "fork", "reload"] = "startup",
        session_id: str | None = None,
        new: bool = False,
        name: str = "",
        tell: bool = True,
    ) -> AgentSession:
        wanted = self._wanted(settings)  # read first: what changes meanwhile is seen next time
        lease = await self._opener.extensions.take(self._address.place)
        try:
            session = await self._opener.open(
                self._address,
                settings,
                self._journal,
                questions=self._questions,
                host=self._host,
                began=began,
                extensions=lease.specs,
                session_id=session_id,
                new=new,
                name=name,
            )
        except BaseException:
            lease.close()
            raise
        await self._leave("switch")
        self.current, self._lease, self._made_for = session, lease, wanted
        session.subscribe(self._heard)
        self._opened(session, lease.news if tell else ())
        return session

    @property
    def shared_commands(self) -> Sequence[ChatCommand]:
        """Commands that the present session's extensions bring, but for those of extensions that are the place's own."""
        if self.current is None or self._lease is None:
            return []
        own = {extension.name for extension in self._lease.all if extension.own}
        return [
            ChatCommand(name=command.name, description=command.description)
            for owner, command in self.current.extensions.owned_commands()
            if owner not in own
        ]

    def _wanted(self, settings: ChatSettings) -> tuple[str, int]:
        """What a session has to be opened again for: the place's zone and the version of its extensions."""
        return settings.time_zone, self._opener.extensions.version(self._address.place)

    async def _leave(self, reason: Literal["quit", "evict", "switch", "delete", "reload"]) -> None:
        session, self.current = self.current, None
        lease, self._lease = self._lease, None
        if session is not None:
            await session.close(reason)
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
