"""A conversation that commands can act on without a host."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from bot.chat_commands.context import UsageFigures
from features.contracts.chat import Address, Button, ChatCommand
from features.contracts.errors import UserMustAct
from features.contracts.models import Model, ThinkingLevel
from features.contracts.sessions import SessionSummary
from features.extensions import LoadedExtension, LoadedExtensions

__all__ = ["FixedModels", "FixedUsage", "NotedConversation", "NotedExtensions", "NotedStatus", "NotedStop", "NotedUsage"]


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

    @property
    def place(self) -> Address:
        return self.address.place

    @property
    def answer(self) -> str:
        """The last text that was said."""
        return self.said[-1]

    async def say(self, text: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None:
        self.said.append(text)
        self.buttons = [button for row in buttons for button in row]

    async def new_session(self, name: str = "") -> str:
        self.deeds.append(("new", name))
        return "new-id"

    async def resume_session(self, session_id: str) -> str:
        found = [session for session in self.sessions if session.id.startswith(session_id)]
        if len(found) != 1:
            raise UserMustAct(f"There is no session {session_id} here.")
        self.deeds.append(("resume", found[0].id))
        return found[0].name

    async def delete_session(self, session_id: str) -> None:
        self.deeds.append(("delete", session_id))

    async def list_sessions(self) -> Sequence[SessionSummary]:
        return self.sessions

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

    async def rename(self, text: str) -> None:
        self.deeds.append(("name", text))

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
