"""What a command is handed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from bot.access import Access
from bot.settings import SettingsStore
from features.approvals import Approvals
from features.commands import CommandRegistry
from features.contracts.chat import Address, Button, ChannelHealth, ChatCommand, OutboundFile, OutboundMessage, Person
from features.contracts.clock import Clock
from features.contracts.jobs import JobOrigin
from features.contracts.models import Model, ThinkingLevel
from features.contracts.session_transfer import ExportFormat
from features.contracts.sessions import SessionSummary, TreeNode
from features.extensions import LoadedExtension, LoadedExtensions
from features.memory import Memory
from features.skills import SkillCatalog

__all__ = [
    "CommandContext",
    "CommandServices",
    "Conversation",
    "Extensions",
    "Jobs",
    "Models",
    "Moves",
    "Place",
    "Status",
    "Stopped",
    "Tree",
    "UsageFigures",
    "UsageSums",
]


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


class Place(Protocol):
    """Where a move has led: the last text before it, what was said there and may be said again, and where it went on before."""

    @property
    def at(self) -> str: ...

    @property
    def said(self) -> str: ...

    @property
    def left(self) -> str | None: ...


class Tree(Protocol):
    """The present session's tree; ``branch`` are the ids of its present branch, root first."""

    @property
    def roots(self) -> Sequence[TreeNode]: ...

    @property
    def branch(self) -> Sequence[str]: ...


class Moves(Protocol):
    """Contract; ``bot.conversations.session_moves.SessionMoves`` satisfies it.

    - Sessions are this address's own; another's id raises UserMustAct, as does one that is not there or not unique.
    - Every move but ``rename`` and ``label`` asks the extensions, and then stops a run first. What they forbid raises UserMustAct, and
      nothing has changed then.
    """

    async def start_new(self, name: str = "") -> str: ...

    async def resume(self, written: str) -> str: ...

    async def delete(self, written: str) -> None: ...

    async def list(self) -> Sequence[SessionSummary]: ...

    async def rename(self, text: str) -> None: ...

    async def export(self, form: ExportFormat) -> OutboundFile: ...

    async def tree(self) -> Tree: ...

    async def go_to(self, written: str, *, summarise: bool = False, instructions: str = "") -> Place: ...

    async def undo(self) -> Place: ...

    async def retry(self, *, owner: bool) -> None: ...

    async def fork(self, written: str = "") -> Place: ...

    async def label(self, name: str) -> str: ...


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

    @property
    def moves(self) -> Moves: ...

    async def say(self, text: str, *, buttons: Sequence[Sequence[Button]] = (), files: Sequence[OutboundFile] = ()) -> None: ...

    async def extensions(self) -> Sequence[LoadedExtension]: ...

    async def extension_commands(self) -> Sequence[ChatCommand]: ...

    async def extension_models(self) -> Sequence[Model]: ...

    async def stop(self) -> Stopped: ...

    def status(self) -> Status: ...

    async def set_model(self, reference: str) -> None: ...

    async def set_thinking(self, level: ThinkingLevel) -> None: ...

    async def compact(self, instructions: str = "") -> str: ...

    async def answer_question(self, question_id: str, number: str, person: Person, *, owner: bool, group: bool) -> None: ...


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


class Jobs(Protocol):
    """What is said about scheduled jobs; ``JobScheduler.commands``. UserMustAct for what cannot be done."""

    async def schedule(self, address: Address, text: str, origin: JobOrigin) -> OutboundMessage: ...

    async def jobs(self, address: Address) -> OutboundMessage: ...

    async def job(self, address: Address, text: str) -> OutboundMessage: ...

    async def count(self, place: Address) -> int: ...

    async def zone_changed(self, place: Address, zone: str) -> None: ...


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
    jobs: Jobs
    access: Access
    extensions: Extensions
    skills: SkillCatalog
    memory: Memory
    approvals: Approvals
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
