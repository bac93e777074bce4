"""Conversations over a real database, with a scripted model and a platform in memory."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from bot.access import Access
from bot.chat_commands import CommandContext, CommandServices, chat_commands
from bot.config.chat_sections import AccessSection
from bot.conversations import Conversation, Conversations
from bot.conversations.attachments import Attachments
from bot.conversations.services import ConversationServices
from bot.conversations.session_seat import SessionOpener
from bot.conversations.spending import PlaceSpending
from bot.delivery import Inbox, Outbox, StoredMessage
from bot.delivery.place_log import DatabasePlaceLog
from bot.jobs import JobDesk
from bot.jobs.isolated_runs import IsolatedRuns
from bot.migrations import all_migrations
from bot.place_extensions import PlaceExtensions
from bot.questions import Questions
from bot.settings import ChatSettings, SettingsStore
from bot.testing import LoopbackChannel, LoopbackChat
from channels.web import UploadStore
from features.agent import AgentSessionFactory
from features.agent.testing import SCRIPTED_MODEL, FunctionTool, ScriptedModels, ScriptedProvider
from features.approvals import ApprovalOptions, Approvals
from features.commands import CommandRegistry
from features.contracts.chat import Address, InboundMessage, Person
from features.contracts.database import Database as AnyDatabase
from features.contracts.database import Row
from features.contracts.events import SessionEvent
from features.contracts.jobs import JobOrigin, RunEnd
from features.contracts.messages import UserMessage, message_text
from features.contracts.models import Model
from features.contracts.testing import FakeClock, sequential_ids
from features.extensions import ExtensionCatalogue, ExtensionChoices, ExtensionLoader
from features.memory import Memory
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.scheduler import JobScheduler, SchedulerOptions
from features.sessions import DatabaseSessionStore, SessionTransfer
from features.skills import SkillCatalog
from features.storage import Database
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolRegistry
from features.usage import UsageLedger
from workspaces import Workspaces

__all__ = ["Rig", "eventually", "opened"]

SEEING = Model(provider="scripted", id="eyes", api="scripted", input=("text", "image"))


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - the database's thread sets no event here
            await asyncio.sleep(0.001)


class Rig:
    def __init__(self, database: AnyDatabase, folder: Path, provider: ScriptedProvider, clock: FakeClock, settings: dict[str, Any]) -> None:
        ids = _ids
        fallbacks, budget, compaction = settings.pop("fallbacks", ()), settings.pop("budget", 0.0), settings.pop("compaction", None)
        built_in = settings.pop("extensions", ())
        learn = settings.pop("learn", lambda commands: None)
        approvals = settings.pop("approvals", None)
        self.clock = clock
        self.database: Any = database
        self.provider = provider
        self.folder = folder
        self.channel = LoopbackChannel(clock=clock)
        self.taken = 0
        self.tool = FunctionTool("work")
        self.events: list[tuple[Address, SessionEvent]] = []
        defaults = {"model": SCRIPTED_MODEL.reference, "thinking": "off", "time_zone": "UTC", "busy": "steer", "verbose": "status"}
        self.settings = SettingsStore(database, ChatSettings(**{"stream": False, **defaults, **settings}))
        self.store = DatabaseSessionStore(database)
        channels = {"loop": self.channel}
        models = ScriptedModels(provider, SEEING)
        self.outbox = Outbox(
            database, channels, clock=clock, ids=ids, random=Random(1),
            redact=str, refused=self._refused, delivered=lambda delivery: self.scheduler.answer_delivered(delivery.answers),
            changed=lambda delivery: None, moved=lambda old, new: None, where=lambda address: address,
        )  # fmt: skip
        self.questions = Questions(database, self.outbox, clock=clock, ids=ids)
        self.access = Access(AccessSection(mode="open", confirm_open=True, owners=("loop:1",)), database, clock, Random(1))
        self.inbox = Inbox(database, self.access, clock=clock, ids=ids, hand_over=self._hand_over, refused=_nothing, moved=_stays)
        workspaces = Workspaces(folder / "workspaces")
        registry: CommandRegistry[CommandContext] = CommandRegistry(chat_commands())
        usage = UsageLedger(database, clock)
        catalogue = ExtensionCatalogue(ExtensionLoader(), ExtensionChoices(database, clock), entry_points=False)
        self.extensions = PlaceExtensions(catalogue, workspaces, may_have_own=lambda place: True)
        self.skills = SkillCatalog(
            database, clock, host_folder=folder, folder=workspaces.folder, taken=[command.name for command in registry.menu()]
        )
        memory = Memory(DatabasePlaceLog(database), folder=workspaces.folder, host_file=None, is_owners=lambda place: False)
        self.approvals = Approvals(approvals or ApprovalOptions(), database, clock)
        redactor = SecretRedactor()
        processes = ProcessRunner(ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ=os.environ), redactor)
        desk = JobDesk(
            database=database, inbox=self.inbox, outbox=self.outbox, settings=self.settings, workspaces=workspaces, access=self.access,
            channels=channels, conversations=lambda: self.conversations, isolated=lambda: self.isolated,
        )  # fmt: skip
        self.scheduler = JobScheduler(database, desk, processes, SchedulerOptions(), clock=clock, ids=ids)
        command_services = CommandServices(
            models=_Models(models), settings=self.settings, usage=usage, access=self.access, extensions=self.extensions,
            skills=self.skills, memory=memory, approvals=self.approvals, jobs=self.scheduler.commands,
            channels_health=dict, registry=registry, clock=clock,
        )  # fmt: skip

        def context(conversation: Conversation, sender: Person, owner: bool, group: bool) -> CommandContext:
            return CommandContext(conversation=conversation, sender=sender, owner=owner, group=group, services=command_services)

        factory = AgentSessionFactory(
            store=self.store, models=models, prompts=SystemPromptBuilder(), redactor=SecretRedactor(), clock=clock, ids=ids,
            random=Random(1), fallbacks=fallbacks, compaction=compaction,
        )  # fmt: skip
        services = ConversationServices(
            inbox=self.inbox,
            outbox=self.outbox,
            questions=self.questions,
            settings=self.settings,
            opener=SessionOpener(
                factory,
                self.store,
                self.settings,
                workspaces,
                clock=clock,
                tools=lambda place, send: ToolRegistry([self.tool]),
                skills=self.skills,
                memory=memory,
                post=self.outbox.post,
                extensions=self.extensions,
                built_in=[self.approvals.extension(), self.scheduler.extension(self._origin), *built_in],
                host_commands=[command.name for command in registry.menu()],
                spending=lambda place, zone: PlaceSpending(usage, place, zone, clock=clock, budget_usd=budget),
            ),
            transfer=SessionTransfer(self.store, originals=folder / "damaged", clock=clock, ids=ids),
            channels=channels,
            attachments=Attachments(workspaces, UploadStore(folder / "uploads"), clock),
            commands=registry,
            context=context,
            skills=self.skills,
            usage=usage,
            publish=lambda address, event: self.events.append((address, event)),
            clock=clock,
            ids=ids,
            learn=learn,
            ended=self._ended,
        )
        self.conversations = Conversations(services, idle_evict_minutes=30)
        self.isolated = IsolatedRuns(services, self.store, channels)
        self._listening: asyncio.Task[None] | None = None

    def chat(self, name: str = "1", *, group: bool = False) -> LoopbackChat:
        return self.channel.chat(name, group=group)

    def conversation(self, name: str = "1") -> Conversation:
        return self.conversations.get(Address("loop", name))

    async def start(self) -> None:
        cut = await self.outbox.recover()
        await self.questions.recover()
        await self.scheduler.recover()
        await self.conversations.recover(cut)
        await self.isolated.recover()
        self.scheduler.start()
        self._listening = asyncio.ensure_future(self.channel.run(self.inbox))

    async def crash(self) -> None:
        """Everything ends where it is. What a killed process would still have written is kept from the disk by the caller."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self.scheduler.close()
        await self.isolated.close()
        await self.conversations.close()
        await self.questions.close()
        await self.outbox.close()
        await self.inbox.close()

    async def rows(self, sql: str) -> list[Row]:
        rows: list[Row] = await self.database.read(lambda t: t.fetch_all(sql))
        return rows

    async def inbox_states(self) -> list[str]:
        return [row[0] for row in await self.rows("SELECT state FROM inbox ORDER BY position")]

    def prompts(self, request: int) -> list[str]:
        """What people had said in a request to the model."""
        return [message_text(message) for message in self.provider.requests[request].messages if isinstance(message, UserMessage)]

    async def asked(self, count: int) -> None:
        """Wait until the model has been asked so often."""
        await eventually(lambda: len(self.provider.requests) >= count)

    async def idle(self) -> None:
        await eventually(lambda: all(conversation.idle for conversation in self.conversations._open.values()) and self.outbox.idle)

    async def arrived(self, count: int) -> None:
        """Wait until so many messages have been accepted and nothing but the clock is waited for."""
        await eventually(lambda: self.taken >= count and all(not len(each._line) for each in self.conversations._open.values()))

    def _hand_over(self, stored: StoredMessage) -> None:
        self.taken += 1
        self.conversations.dispatch(stored)

    def _origin(self, address: Address, session_id: str) -> JobOrigin:
        return self.isolated.origin(session_id) or self.conversations.get(address).origin

    def _ended(self, message_ids: tuple[str, ...], end: RunEnd, error: str) -> None:
        for message_id in message_ids:
            self.scheduler.run_ended(message_id, end, error)

    async def _refused(self, delivery: Any, reason: str) -> None:
        self.conversations.delivery_refused(delivery, reason)
        self.scheduler.answer_delivered(delivery.answers, reason)


class _Models:
    """What the commands want of a registry."""

    def __init__(self, models: ScriptedModels) -> None:
        self.resolve = models.resolve

    def models(self) -> list[Model]:
        return [SCRIPTED_MODEL, SEEING]


async def _stays(old: Address, new: Address) -> None:
    raise AssertionError(f"{old} does not move here")


async def _nothing(message: InboundMessage, verdict: object) -> None:
    return None


_ids = sequential_ids()


@asynccontextmanager
async def opened(
    folder: Path,
    provider: ScriptedProvider,
    *,
    clock: FakeClock | None = None,
    wrap: Callable[[AnyDatabase], AnyDatabase] = lambda database: database,
    **settings: Any,
) -> AsyncIterator[Rig]:
    """A host's conversations; leaving is a crash, after which the same folder may be opened again.

    Args:
        wrap: puts something between them and the database.
    """
    async with Database(folder / "state.db", all_migrations()) as database:
        rig = Rig(wrap(database), folder, provider, clock or FakeClock(), settings)
        await rig.access.load()
        await rig.start()
        try:
            yield rig
        finally:
            await rig.crash()
