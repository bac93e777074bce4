"""A conversation that commands can act on without a host."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from bot.chat_commands.context import UsageFigures
from features.contracts.chat import Address, Button, ChatCommand, OutboundFile, Person
from features.contracts.errors import UserMustAct
from features.contracts.models import Model, ThinkingLevel
from features.contracts.session_transfer import ExportFormat
from features.contracts.sessions import SessionSummary, TreeNode
from features.extensions import LoadedExtension, LoadedExtensions

__all__ = [
    "FixedModels",
    "FixedUsage",
    "NotedConversation",
    "NotedExtensions",
    "NotedMoves",
    "NotedPlace",
    "NotedStatus",
    "NotedStop",
    "NotedTree",
    "NotedUsage",
]


@dataclass
class NotedStop:
    was_running: bool = False
    kept: int = 0


@dataclass
class NotedStatus:
    running: bool = False
    queued: int = 0
    running_tools: tuple[str, ...] = ()
    model: str = ""
    context_tokens: int = 0
    context_window: int = 0
    session_id: str | None = None
    session_name: str = ""


@dataclass
class NotedTree:
    roots: Sequence[TreeNode] = ()
    branch: Sequence[str] = ()


@dataclass
class NotedPlace:
    at: str = ""
    said: str = ""
    left: str | None = None


@dataclass
class NotedConversation:
    """Keeps what it was told to do in ``deeds`` and what was said in ``said``, each text with its buttons."""

    address: Address
    sessions: list[SessionSummary] = field(default_factory=list)
    extended: list[LoadedExtension] = field(default_factory=list)
    brought_commands: list[ChatCommand] = field(default_factory=list)
    brought_models: list[Model] = field(default_factory=list)
    now: NotedStatus = field(default_factory=NotedStatus)
    stopping: NotedStop = field(default_factory=NotedStop)
    said: list[str] = field(default_factory=list)
    buttons: list[Button] = field(default_factory=list)
    deeds: list[tuple[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    shown: NotedTree = field(default_factory=lambda: NotedTree())
    arrival: NotedPlace = field(default_factory=lambda: NotedPlace())

    @property
    def place(self) -> Address:
        return self.address.place

    @property
    def answer(self) -> str:
        """The last text that was said."""
        return self.said[-1]

    @property
    def moves(self) -> "NotedMoves":
        return NotedMoves(self)

    async def say(self, text: str, *, buttons: Sequence[Sequence[Button]] = (), files: Sequence[OutboundFile] = ()) -> None:
        self.said.append(text)
        self.files += [file.name for file in files]
        self.buttons = [button for row in buttons for button in row]

    async def extensions(self) -> Sequence[LoadedExtension]:
        return self.extended

    async def extension_commands(self) -> Sequence[ChatCommand]:
        return self.brought_commands

    async def extension_models(self) -> Sequence[Model]:
        return self.brought_models

    async def stop(self) -> NotedStop:
        self.deeds.append(("stop", ""))
        return self.stopping

    def status(self) -> NotedStatus:
        return self.now

    async def set_model(self, reference: str) -> None:
        self.deeds.append(("model", reference))

    async def set_thinking(self, level: ThinkingLevel) -> None:
        self.deeds.append(("thinking", level))

    async def answer_question(self, question_id: str, number: str, person: Person, *, owner: bool, group: bool) -> None:
        self.deeds.append(("answer", f"{question_id} {number}"))

    async def compact(self, instructions: str = "") -> str:
        self.deeds.append(("compact", instructions))
        return "Summed up."


@dataclass
class NotedExtensions:
    """Keeps decisions in ``deeds``; ``trust`` knows the digests in ``known`` alone."""

    known: dict[str, str] = field(default_factory=dict)
    loaded: LoadedExtensions = field(default_factory=LoadedExtensions)
    deeds: list[tuple[str, ...]] = field(default_factory=list)

    async def reload(self) -> LoadedExtensions:
        self.deeds.append(("reload",))
        return self.loaded

    async def trust(self, place: Address, digest: str, *, by: str) -> str:
        if digest not in self.known:
            raise UserMustAct("No extension here has that content any more.")
        self.deeds.append(("trust", str(place), digest, by))
        return self.known[digest]

    async def disable(self, place: Address, name: str, *, by: str) -> None:
        self.deeds.append(("disable", str(place), name, by))

    async def enable(self, place: Address, name: str) -> None:
        self.deeds.append(("enable", str(place), name))


@dataclass
class NotedMoves:
    """Notes moves as deeds of its conversation."""

    conversation: NotedConversation

    async def start_new(self, name: str = "") -> str:
        self._note("new", name)
        return "new-id"

    async def resume(self, written: str) -> str:
        found = [session for session in self.conversation.sessions if session.id.startswith(written)]
        if len(found) != 1:
            raise UserMustAct(f"There is no session {written} here.")
        self._note("resume", found[0].id)
        return found[0].name

    async def delete(self, written: str) -> None:
        self._note("delete", written)

    async def list(self) -> Sequence[SessionSummary]:
        return self.conversation.sessions

    async def rename(self, text: str) -> None:
        self._note("name", text)

    async def export(self, form: ExportFormat) -> OutboundFile:
        self._note("export", form)
        return OutboundFile(path=Path("/nowhere"), name=f"session.{form}")

    async def tree(self) -> NotedTree:
        return self.conversation.shown

    async def go_to(self, written: str, *, summarise: bool = False, instructions: str = "") -> NotedPlace:
        self._note("go", f"{written} {summarise} {instructions}".rstrip())
        return self.conversation.arrival

    async def undo(self) -> NotedPlace:
        self._note("undo", "")
        return self.conversation.arrival

    async def retry(self, *, owner: bool) -> None:
        self._note("retry", str(owner))

    async def fork(self, written: str = "") -> NotedPlace:
        self._note("fork", written)
        return self.conversation.arrival

    async def label(self, name: str) -> str:
        self._note("label", name)
        return self.conversation.arrival.at

    def _note(self, deed: str, detail: str) -> None:
        self.conversation.deeds.append((deed, detail))


@dataclass
class FixedModels:
    """Knows its models alone."""

    known: list[Model]

    def models(self) -> Sequence[Model]:
        return self.known

    def resolve(self, reference: str) -> Model:
        for model in self.known:
            if model.reference == reference:
                return model
        raise UserMustAct(f"There is no model {reference}.")


@dataclass(frozen=True, kw_only=True)
class NotedUsage:
    day: date
    model: str
    calls: int = 1
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0


@dataclass
class FixedUsage:
    """The same figures for every place; ``asked`` keeps the questions."""

    rows: list[NotedUsage] = field(default_factory=list)
    asked: list[tuple[str, date]] = field(default_factory=list)

    async def spent(self, place: str, day: date) -> float:
        self.asked.append((place, day))
        return sum(row.cost for row in self.rows if row.day == day)

    async def totals(self, place: str, since: date) -> Sequence[UsageFigures]:
        self.asked.append((place, since))
        return [row for row in self.rows if row.day >= since]
