"""The composition root: everything is made here, entered in the order of the floors, and left in reverse.

::

    starting --recovered--> running --cancelled--> stopping: channels hear no more
                                                             runs may end by themselves for 5 s, then they are parked
                                                             the outbox is emptied for 2 s
                                                             http, conversations, database are closed
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from bot.access import Access
from bot.chat_commands import CommandContext, CommandServices, chat_commands
from bot.command_menu import CommandMenu
from bot.config import Config
from bot.conversations import Conversation, Conversations
from bot.conversations.attachments import Attachments
from bot.conversations.services import ConversationServices
from bot.conversations.session_seat import SessionOpener
from bot.conversations.spending import PlaceSpending
from bot.delivery import Inbox, Outbox, StoredMessage
from bot.delivery.chat_log import ChatLog
from bot.delivery.delivery import Delivery
from bot.delivery.errands import Errands, within
from bot.delivery.inbox import Judgement
from bot.extension_texts import extension_problems
from bot.host_desk import HostDesk, HostState
from bot.host_parts import (
    default_settings,
    make_channels,
    make_extensions,
    make_hooks,
    make_memory,
    make_models,
    make_processes,
    make_sessions,
    make_tools,
    make_transcriber,
    scheduler_options,
    webhooks_of,
)
from bot.http.auth import load_or_create_token
from bot.http.events import EventHub
from bot.jobs import JobDesk
from bot.jobs.heartbeats import Heartbeats
from bot.jobs.isolated_runs import IsolatedRuns
from bot.jobs.webhooks import Webhooks
from bot.listening import Listening
from bot.lock import DataDirectoryLock
from bot.metrics import Metrics
from bot.migrations import all_migrations
from bot.owner_notices import OwnerNotices
from bot.place_extensions import PlaceExtensions
from bot.place_moves import PlaceMoves
from bot.questions import Questions
from bot.sandbox import make_sandbox
from bot.session_file import SessionFileHost
from bot.settings import SettingsStore
from channels.web import UploadStore
from features.approvals import Approvals
from features.commands import CommandRegistry
from features.contracts.chat import Address, ChatChannel, InboundMessage, OutboundMessage, Person
from features.contracts.clock import Clock
from features.contracts.errors import OperatorMustAct, PumiceError, UserMustAct
from features.contracts.events import SessionEvent
from features.contracts.jobs import JobOrigin, RunEnd
from features.contracts.places import PlaceFollower
from features.contracts.sessions import SessionStore
from features.pins import Pins
from features.processes import HostProcessHardening, SecretRedactor
from features.scheduler import JobScheduler
from features.sessions import DatabaseSessionStore, SessionTransfer
from features.skills import SkillCatalog
from features.storage import Database
from features.usage import UsageLedger
from workspaces import Workspaces

__all__ = ["Host"]

log = logging.getLogger("pumice.host")

_RUNS_MAY_END_S = 5.0
_OUTBOX_MAY_EMPTY_S = 2.0
_CHANNELS_MAY_END_S = 1.0


class Host:
    """Works while it is entered.

    Args:
        channels: names of channels, or channels of one's own, in place of those that the configuration enables.
        session_file: keeps the conversation in a file, and what else the host needs in a directory of its own.

    Raises:
        OperatorMustAct: on entering, for what is not as it has to be; nothing is left running then.
    """

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        ids: Callable[[], str],
        random: Random,
        channels: Iterable[str | ChatChannel] | None = None,
        session_file: SessionFileHost | None = None,
    ) -> None:
        self.config = config
        self._session_file = session_file
        self._state_dir = config.host.data_dir if session_file is None else session_file.state_dir
        self.redactor = SecretRedactor()
        self._clock = clock
        self._ids = ids
        self._random = random
        self._wanted = channels
        self._state: HostState = "starting"
        self._stack = AsyncExitStack()
        self._errands = Errands(log, ids)
        for key, value in config.secrets:
            self.redactor.add(value, name=key)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            with _starting("the data directory"):
                stack.enter_context(DataDirectoryLock(self._state_dir))
                token = load_or_create_token(self._state_dir, self.config.http.token)
                self.redactor.add(token, name="http.token")
            if self.config.processes.harden:
                for warning in HostProcessHardening().apply():
                    log.warning("not hardened", extra={"facts": {"reason": warning}})
            with _starting("the database"):
                self.database = await stack.enter_async_context(Database(self._database_path, all_migrations()))
            with _starting("the sandbox"):
                self._sandbox = await make_sandbox(self.config)
            with _starting("the chats"):
                await self._compose(stack)
                await self._recover(stack)
            with _starting("the web server"):
                await self._serve_http(stack, token)
            self._state = "running"
            log.info("host started", extra={"facts": {"channels": sorted(self.channels), "data_dir": str(self.config.host.data_dir)}})
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._settle()
        await self._stack.aclose()
        log.info("host stopped")

    async def _settle(self) -> None:
        """Take nothing more, and let what goes on come to its end; also in a start that is broken off after it took up what was left."""
        if self._state == "stopping":
            return
        self._state = "stopping"
        log.info("host stopping")
        self.scheduler.leave()
        self.conversations.leave()
        await within(self._clock, _CHANNELS_MAY_END_S, self._listening.close())
        await asyncio.gather(self.conversations.settle(_RUNS_MAY_END_S), self.isolated.settle(_RUNS_MAY_END_S))
        if not await self.outbox.drain(_OUTBOX_MAY_EMPTY_S):
            log.info("some messages go out at the next start")

    @property
    def url(self) -> str:
        return self._http.url

    def login_link(self) -> str:
        """A link that opens the page once."""
        return self._http.login_link()

    async def _compose(self, stack: AsyncExitStack) -> None:
        config, clock = self.config, self._clock
        self._uploads = UploadStore(self._state_dir / "uploads")
        self._settings = SettingsStore(self.database, default_settings(config))
        self._usage = UsageLedger(self.database, clock)
        self._models = make_models(config, clock=clock, ids=self._ids)
        stack.push_async_callback(self._models.close)
        self._check_models()
        self._access = Access(
            config.access, self.database, clock, self._random, welcome=lambda person: self._owners.welcome(person),
            revoked=self._revoked,
        )  # fmt: skip
        await self._access.load()
        self.events = EventHub(clock)
        self._metrics = Metrics(clock)
        self.commands: CommandRegistry[CommandContext] = CommandRegistry(chat_commands())
        self._menu = CommandMenu(self.commands, changed=lambda: self._listening.announce_again())
        self._workspaces = Workspaces(config.host.data_dir / "workspaces")
        self._memory = make_memory(config, self.database, self._access, self._workspaces)
        self._skills = SkillCatalog(
            self.database, clock, host_folder=config.host.data_dir, folder=self._workspaces.folder,
            taken=[command.name for command in self.commands.menu()],
        )  # fmt: skip
        self._compose_delivery(stack)
        await self._compose_extensions(stack)
        self._compose_scheduler(stack)
        self._compose_conversations(stack)
        self._listening: Listening = Listening(self.channels, self.inbox, self._menu, self._skills, clock=clock, ids=self._ids)
        stack.push_async_callback(self._errands.close)

    def _compose_delivery(self, stack: AsyncExitStack) -> None:
        clock, ids = self._clock, self._ids
        self._moves = PlaceMoves(self.database, self._workspaces, clock)
        self.channels = make_channels(self.config, self._uploads, self._wanted, doing=self.events.doing, clock=clock, random=self._random)
        self.outbox = Outbox(
            self.database, self.channels, clock=clock, ids=ids, random=self._random,
            redact=self.redactor.redact, refused=self._delivery_refused,
            delivered=self._delivered, changed=self._changed, moved=self._place_moved, where=self._moves.where,
        )  # fmt: skip
        stack.push_async_callback(self.outbox.close)
        self._questions = Questions(self.database, self.outbox, clock=clock, ids=ids)
        stack.push_async_callback(self._questions.close)
        self._owners = OwnerNotices(self._access, self.outbox, self.channels, clock)
        self.inbox = Inbox(
            self.database, self._access, clock=clock, ids=ids, hand_over=self._hand_over, refused=self._say_refusal,
            moved=self._follow,
        )  # fmt: skip
        stack.push_async_callback(self.inbox.close)

    def _compose_scheduler(self, stack: AsyncExitStack) -> None:
        config, clock, ids = self.config, self._clock, self._ids
        jobs = JobDesk(
            database=self.database, inbox=self.inbox, outbox=self.outbox, settings=self._settings, workspaces=self._workspaces,
            access=self._access, channels=self.channels, conversations=lambda: self.conversations, isolated=lambda: self.isolated,
        )  # fmt: skip
        options = scheduler_options(config, sandboxed=self._sandbox is not None)
        self.scheduler = JobScheduler(self.database, jobs, self._processes, options, clock=clock, ids=ids)
        stack.push_async_callback(self.scheduler.close)
        self._webhooks = Webhooks(config.webhooks, jobs, clock, ids)
        self._heartbeats = Heartbeats(self.scheduler, config.heartbeat, ids)
        stack.push_async_callback(self._heartbeats.close)
        if "schedule" not in config.tools.disabled:
            self._built_in += (self.scheduler.extension(self._job_origin),)
        self._parked: set[str] = set()

    def _job_origin(self, address: Address, session_id: str) -> JobOrigin:
        """Who speaks in a session at the moment, for the jobs that it makes."""
        isolated = self.isolated.origin(session_id)
        conversation = self.conversations.find(address)
        return isolated or (JobOrigin() if conversation is None else conversation.origin)

    async def _compose_extensions(self, stack: AsyncExitStack) -> None:
        config = self.config
        self._processes = make_processes(config, self.redactor, self._sandbox)
        hooks = await stack.enter_async_context(make_hooks(config, self._processes, self.redactor, clock=self._clock, ids=self._ids))
        self._approvals = Approvals(config.approvals.options(), self.database, self._clock)
        built_in = [Pins().spec()]
        if config.hooks:
            built_in.append(hooks.spec())
        if self._approvals.options.asks:
            built_in.append(self._approvals.extension())
        self._built_in = tuple(built_in)
        catalogue = make_extensions(config, self.database, clock=self._clock)
        stack.callback(catalogue.close)
        self._extensions = PlaceExtensions(catalogue, self._workspaces, may_have_own=self._may_have_own_extensions)
        self._loaded = await self._extensions.reload()

    def _may_have_own_extensions(self, place: Address) -> bool:
        """Where nothing confines what they start, only where nobody but an owner talks."""
        return self._sandbox is not None or place.channel == "web" or self._access.is_owner(str(place))

    def _compose_conversations(self, stack: AsyncExitStack) -> None:
        config, clock, ids, workspaces = self.config, self._clock, self._ids, self._workspaces
        store = self._store = self._open_store(stack)
        transfer = SessionTransfer(store, originals=config.host.data_dir / "damaged", clock=clock, ids=ids)
        opener = SessionOpener(
            make_sessions(config, store, self._models, self.redactor, clock=clock, ids=ids, random=self._random),
            store, self._settings, workspaces, clock=clock,
            tools=make_tools(config, self._processes, self._memory, sandboxed=self._sandbox is not None),
            skills=self._skills, memory=self._memory, instructions=config.host.data_dir / "AGENTS.md", post=self.outbox.post,
            extensions=self._extensions, built_in=self._built_in,
            processes=self._processes, host_commands=[command.name for command in self.commands.menu()], roots=config.tools.roots,
            spending=lambda place, zone: PlaceSpending(
                self._usage, place, zone, clock=clock, budget_usd=config.models.budget_usd_per_day,
            ),
        )  # fmt: skip
        services = ConversationServices(
            inbox=self.inbox, outbox=self.outbox, questions=self._questions, settings=self._settings, opener=opener,
            transfer=transfer, channels=self.channels, skills=self._skills,
            attachments=Attachments(workspaces, self._uploads, clock, make_transcriber(config, self._processes)),
            commands=self.commands, learn=self._menu.learn, context=self._command_context(),
            usage=self._usage, publish=self._publish, clock=clock, ids=ids, ended=self._run_ended,
            stop_apart=lambda address: self.isolated.stop(lambda run: run.address == address),
            still_admits=lambda person, place, group, owner: self._access.still_admits(person, place, group=group, owner=owner),
        )  # fmt: skip
        self.conversations = Conversations(services, idle_evict_minutes=config.chat.idle_evict_minutes)
        stack.push_async_callback(self.conversations.close)
        self.isolated = IsolatedRuns(services, store, self.channels)
        stack.push_async_callback(self.isolated.close)
        self.desk = HostDesk(
            events=self.events, channels=self.channels, conversations=self.conversations, inbox=self.inbox, outbox=self.outbox,
            log=ChatLog(self.database), store=store, transfer=transfer, usage=self._usage, access=self._access, uploads=self._uploads,
            commands=self._menu.all, skill_commands=lambda: self._listening.skill_commands,
            scheduler=self.scheduler, webhooks=self._webhooks, metrics=self._exposition if config.observability.prometheus else None,
            state=lambda: self._state, clock=clock, ids=ids,
        )  # fmt: skip

    @property
    def _database_path(self) -> Path:
        return self.config.database_path if self._session_file is None else self._state_dir / "state.db"

    def _open_store(self, stack: AsyncExitStack) -> SessionStore:
        if self._session_file is None:
            return DatabaseSessionStore(self.database)
        store = self._session_file.open(self.database, clock=self._clock, ids=self._ids)
        stack.push_async_callback(store.close)
        return store

    def _command_context(self) -> Callable[[Conversation, Person, bool, bool], CommandContext]:
        services = CommandServices(
            models=self._models, settings=self._settings, usage=self._usage, access=self._access, extensions=self._extensions,
            skills=self._skills, memory=self._memory, approvals=self._approvals, jobs=self.scheduler.commands, registry=self.commands,
            channels_health=lambda: {name: channel.health() for name, channel in self.channels.items()}, clock=self._clock,
        )  # fmt: skip

        def context(conversation: Conversation, sender: Person, owner: bool, group: bool) -> CommandContext:
            return CommandContext(conversation=conversation, sender=sender, owner=owner, group=group, services=services)

        return context

    async def _recover(self, stack: AsyncExitStack) -> None:
        """Take up what is left from before, then listen: what is new queues behind what is old."""
        await self._moves.recover(self._followers())
        stack.push_async_callback(self._settle)
        cut = await self.outbox.recover()
        await self._questions.recover()
        await self.scheduler.recover()
        await self.conversations.recover(cut)
        await self.isolated.recover()
        self.scheduler.start()
        await self._heartbeats.follow_configuration()
        self._parked |= await self.scheduler.book.parked_places()
        stack.push_async_callback(self._listening.close)
        self._listening.start()
        self._errands.start(self.conversations.sweep(), name="idle sweep")
        if self._loaded.problems:
            self._errands.start(self._owners.tell(extension_problems(self._loaded.problems)), name="extension problems")

    async def _serve_http(self, stack: AsyncExitStack, token: str) -> None:
        from bot.http.server import HttpServer

        http = self.config.http
        server = HttpServer(
            self.desk, token=token, data_dir=self._state_dir, clock=self._clock,
            host=http.host, port=http.port, public_url=http.public_url, webhooks=webhooks_of(self.channels.values()),
        )  # fmt: skip
        self._http = await stack.enter_async_context(server)

    def _check_models(self) -> None:
        models = self.config.models
        for key, reference in (("default", models.default), *((f"fallbacks[{i}]", each) for i, each in enumerate(models.fallbacks))):
            try:
                self._models.resolve(reference)
            except UserMustAct as error:
                raise OperatorMustAct(f"models.{key} is {reference!r}. {error}") from None

    def _followers(self) -> list[PlaceFollower]:
        """Everybody who keeps something by place."""
        sessions = [self._store] if isinstance(self._store, DatabaseSessionStore) else []
        return [
            self._access, self._settings, self.inbox, self.outbox, *sessions, self._questions, self._approvals, self._extensions,
            self._skills, self._usage, self.scheduler,
        ]  # fmt: skip

    async def _exposition(self) -> tuple[bytes, str]:
        health = {name: channel.health() for name, channel in self.channels.items()}
        return await self._metrics.exposition(self.database, health, conversations=lambda: len(self.conversations))

    # What the parts tell each other

    async def _follow(self, old: Address, new: Address) -> None:
        await self._moves.move(old, new, self.conversations, self.outbox)

    def _place_moved(self, old: Address, new: Address) -> None:
        work = self._moves.move(old, new, self.conversations, self.outbox, again=True)
        self._errands.start(work, name=f"{old} moves")

    def _hand_over(self, stored: StoredMessage) -> None:
        self.desk.received(stored)
        self._metrics.received(stored)
        self.conversations.dispatch(stored)
        self._heartbeats.heard(stored)
        if str(stored.message.address.place) in self._parked:
            self._parked.discard(str(stored.message.address.place))
            self._errands.start(self.scheduler.book.unpark(stored.message.address.place), name="jobs go on")

    def _publish(self, address: Address, event: SessionEvent) -> None:
        self._metrics.event(address, event)
        self.events.publish(address, event)

    def _run_ended(self, message_ids: tuple[str, ...], end: RunEnd, error: str) -> None:
        self._metrics.run_ended(message_ids, end)
        for message_id in message_ids:
            self.scheduler.run_ended(message_id, end, error)

    def _changed(self, delivery: Delivery) -> None:
        self.desk.changed(delivery)

    def _delivered(self, delivery: Delivery) -> None:
        self.desk.delivered(delivery)
        self._metrics.delivered(delivery)
        self.scheduler.answer_delivered(delivery.answers)

    async def _say_refusal(self, message: InboundMessage, verdict: Judgement) -> None:
        if verdict.reply is not None:
            await self.outbox.post(message.address, OutboundMessage(text=verdict.reply, reply_to=message.ref if message.group else None))
        if verdict.tell_owners is not None:
            await self._owners.tell(verdict.tell_owners)

    async def _revoked(self, who: str) -> None:
        await self.conversations.revoke(who)
        await self.isolated.stop(lambda run: who in (run.by, str(run.address.place)))

    async def _delivery_refused(self, delivery: Delivery, reason: str) -> None:
        self.conversations.delivery_refused(delivery, reason)
        self._metrics.refused(delivery)
        if not delivery.message.files:
            self._parked.add(str(delivery.address.place))
            self.scheduler.answer_delivered(delivery.answers, reason)
        await self._owners.undeliverable(delivery.address, reason)


@contextmanager
def _starting(what: str) -> Iterator[None]:
    """Name what could not be started."""
    try:
        yield
    except (PumiceError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise OperatorMustAct(f"{what} could not be started: {type(error).__name__}: {error}. The log has the rest.") from error
