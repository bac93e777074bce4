"""A chat in which commands can be typed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from bot.access import ACCESS_MIGRATIONS, Access
from bot.chat_commands import CommandContext, CommandServices, chat_commands
from bot.chat_commands.context import Jobs
from bot.chat_commands.testing import FixedModels, FixedUsage, NotedConversation, NotedExtensions
from bot.config.chat_sections import AccessSection
from bot.delivery import DELIVERY_MIGRATIONS
from bot.delivery.place_log import DatabasePlaceLog
from bot.settings import SETTINGS_MIGRATIONS, ChatSettings, SettingsStore
from features.approvals import APPROVAL_MIGRATIONS, ApprovalOptions, Approvals
from features.commands import CommandRegistry
from features.contracts.chat import Address, Button, ChannelHealth, Person
from features.contracts.errors import PumiceError, UserMustAct
from features.contracts.models import Model
from features.contracts.testing import FakeClock, sequential_ids
from features.memory import Memory
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.scheduler import SCHEDULER_MIGRATIONS, JobScheduler, SchedulerOptions
from features.scheduler.testing import HANDED_MIGRATIONS, MemoryDelivery
from features.skills import SKILL_MIGRATIONS, SkillCatalog
from tests.bot.memory_database import MemoryDatabase
from workspaces import Workspaces

OWNER = Person(id="telegram:1", name="Anna")
GUEST = Person(id="telegram:2", name="Bert")
MODELS = [
    Model(provider="offline", id="assistant", api="offline", name="Offline"),
    Model(provider="anthropic", id="claude-x", api="anthropic-messages", name="Claude X"),
]


@dataclass
class Chat:
    """``says`` types a command and gives back the answer; what else happened is in ``conversation``."""

    services: CommandServices
    models: FixedModels
    usage: FixedUsage
    clock: FakeClock
    health: dict[str, ChannelHealth]
    desk: NotedExtensions
    conversation: NotedConversation = field(default_factory=lambda: NotedConversation(Address("telegram", "1", "7")))

    async def says(self, text: str, by: Person = OWNER, *, group: bool = False) -> str:
        found = self.services.registry.parse(text)
        assert found is not None, text
        command, arguments = found
        before = len(self.conversation.said)
        owner = self.services.access.is_owner(by.id)
        context = CommandContext(conversation=self.conversation, sender=by, owner=owner, group=group, services=self.services)
        try:  # as the conversation's command desk does
            if command.owner_only and not owner:
                raise UserMustAct(f"`/{command.name}` is for owners only.")
            await command.run(context, arguments)
        except PumiceError as error:
            await self.conversation.say(str(error))

        assert len(self.conversation.said) == before + 1, "a command answers exactly once"
        return self.conversation.answer

    async def settings(self) -> ChatSettings:
        return await self.services.settings.get(self.conversation.place)

    @property
    def buttons(self) -> dict[str, str]:
        return {button.label: button.command for button in self.conversation.buttons}

    async def presses(self, button: Button, by: Person = OWNER, *, group: bool = False) -> str:
        return await self.says(button.command, by, group=group)


def resting_jobs(database: MemoryDatabase, clock: FakeClock, folder: Path) -> Jobs:
    """What is said about jobs, of a scheduler in which none becomes due."""
    redactor = SecretRedactor()
    processes = ProcessRunner(ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ={}), redactor)
    delivery = MemoryDelivery(folder)
    return JobScheduler(database, delivery, processes, SchedulerOptions(), clock=clock, ids=sequential_ids()).commands


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    database = MemoryDatabase(
        SETTINGS_MIGRATIONS, ACCESS_MIGRATIONS, DELIVERY_MIGRATIONS, SKILL_MIGRATIONS, APPROVAL_MIGRATIONS, SCHEDULER_MIGRATIONS,
        HANDED_MIGRATIONS,
    )  # fmt: skip
    clock = FakeClock()
    access = Access(AccessSection(owners=(OWNER.id,)), database, clock, Random(1))
    await access.load()
    defaults = ChatSettings(
        model="offline/assistant", thinking="off", time_zone="Europe/Vienna", busy="steer", verbose="status", stream=True
    )
    models, usage = FixedModels(list(MODELS)), FixedUsage()
    health: dict[str, ChannelHealth] = {}
    desk = NotedExtensions()
    registry = CommandRegistry(chat_commands())
    workspaces = Workspaces(tmp_path / "workspaces")
    services = CommandServices(
        models=models,
        settings=SettingsStore(database, defaults),
        usage=usage,
        jobs=resting_jobs(database, clock, tmp_path),
        access=access,
        extensions=desk,
        approvals=Approvals(ApprovalOptions(tools={"bash": "ask", "write": "deny"}, allow_commands=("git status",)), database, clock),
        channels_health=lambda: health,
        skills=SkillCatalog(
            database, clock, host_folder=tmp_path, folder=workspaces.folder, taken=[command.name for command in registry.menu()]
        ),
        memory=Memory(
            DatabasePlaceLog(database),
            folder=workspaces.folder,
            host_file=tmp_path / "MEMORY.md",
            is_owners=lambda place: access.is_owner(str(place)),
        ),
        registry=registry,
        clock=clock,
    )
    yield Chat(services=services, models=models, usage=usage, clock=clock, health=health, desk=desk)
    database.close()
