"""What a command is handed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from bot.access import Access
from bot.settings import SettingsStore
from features.commands import CommandRegistry
from features.contracts.chat import Address, Button, ChannelHealth, ChatCommand, Person
from features.contracts.clock import Clock
from features.contracts.models import Model, ThinkingLevel
from features.contracts.sessions import SessionSummary
from features.extensions import LoadedExtension, LoadedExtensions
from features.memory import Memory
from features.skills import SkillCatalog

__all__ = ["CommandContext", "CommandServices", "Conversation", "Extensions", "Models", "Status", "Stopped", "UsageFigures", "UsageSums"]


class Stopped(Protocol):
    """What a stop came to: whether a run was going on, and how many messages wait."""

    @property
    def was_running(self) -> bool: ...

    @property
    def kept(self) -> int: ...


class Status(Protocol):
    """What a conversation is doing. ``model`` is the reference of the one really used; sizes are tokens."""

    @property
    def running(self) -> bool: ...

    @property
    def queued(self) -> int: ...

    @property
    def running_tools(self) -> tuple[str, ...]: ...

    @property
    def model(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    @property
    def context_window(self) -> int: ...

    @property
    def session_id(self) -> str | None: ...

    @property
    def session_name(self) -> str: ...


class Conversation(Protocol):
    """Contract; ``bot.conversations.Conversation`` satisfies it.

    - ``say`` returns once the text is in the outbox.
    - Sessions are this address's own; another's id raises UserMustAct, as does one that is not there or not unique.
    - ``extensions`` are those at work in this chat, after a look at what has changed.
    - ``extension_commands`` and ``extension_models`` are what those bring.
    - ``compact`` gives what to say about it; while a run goes on it is only noted.
    - ``new_session``, ``resume_session`` and ``delete_session`` stop a run first.
    """

    @property
    def address(self) -> Address: ...

    @property
    def place(self) -> Address: ...

    async def say(self, text: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None: ...

    async def new_session(self, name: str = "") -> str: ...

    async def resume_session(self, session_id: str) -> str: ...

    async def delete_session(self, session_id: str) -> None: ...

    async def list_sessions(self) -> Sequence[SessionSummary]: ...

    async def extensions(self) -> Sequence[LoadedExtension]: ...

    async def extension_commands(self) -> Sequence[ChatCommand]: ...

    async def extension_models(self) -> Sequence[Model]: ...

    async def stop(self) -> Stopped: ...

    def status(self) -> Status: ...

    async def set_model(self, reference: str) -> None: ...

    async def set_thinking(self, level: ThinkingLevel) -> None: ...

    async def rename(self, text: str) -> None: ...

    async def compact(self, instructions: str = "") -> str: ...


class Models(Protocol):
    """The models that can be chosen; ``features.models.ModelRegistry``."""

    def resolve(self, reference: str) -> Model: ...

    def models(self) -> Sequence[Model]: ...


class UsageFigures(Protocol):
    """What one model used on one day."""

    @property
    def day(self) -> date: ...

    @property
    def model(self) -> str: ...

    @property
    def calls(self) -> int: ...

    @property
    def input(self) -> int: ...

    @property
    def output(self) -> int: ...

    @property
    def cache_read(self) -> int: ...

    @property
    def cache_write(self) -> int: ...

    @property
    def cost(self) -> float: ...


class UsageSums(Protocol):
    """Tokens and money by place and day; ``features.usage.UsageLedger``."""

    async def spent(self, place: str, day: date) -> float: ...

    async def totals(self, place: str, since: date) -> Sequence[UsageFigures]: ...


class Extensions(Protocol):
    """Decisions of owners about extensions, by place; ``bot.place_extensions.PlaceExtensions``."""

    async def reload(self) -> LoadedExtensions: ...

    async def trust(self, place: Address, digest: str, *, by: str) -> str: ...

    async def disable(self, place: Address, name: str, *, by: str) -> None: ...

    async def enable(self, place: Address, name: str) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandServices:
    """What all commands of a host share. ``registry`` is the one that they are in, for ``/help``."""

    models: Models
    settings: SettingsStore
    usage: UsageSums
    access: Access
    extensions: Extensions
    skills: SkillCatalog
    memory: Memory
    channels_health: Callable[[], Mapping[str, ChannelHealth]]
    registry: "CommandRegistry[CommandContext]"
    clock: Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandContext:
    """One command in one chat. ``owner`` says whether an owner of the host gave it."""

    conversation: Conversation
    sender: Person
    owner: bool
    group: bool
    services: CommandServices

    async def say(self, text: str, *rows: Sequence[Button]) -> None:
        """Answer; each of ``rows`` is a row of buttons."""
        await self.conversation.say(text, buttons=tuple(tuple(row) for row in rows))
