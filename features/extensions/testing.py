"""An extension under test, without a session around it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec

from features.contracts.clock import Clock
from features.contracts.extension_events import ExtensionEvent
from features.contracts.extensions import Activate, EventBus, ExecResult, ExtensionCommand, MessageRenderer, SessionView
from features.contracts.messages import Message, UserBlock
from features.contracts.models import Model, Provider, ThinkingLevel
from features.contracts.sessions import SessionEntry
from features.contracts.testing import FakeClock
from features.contracts.tools import Tool, ToolContext, ToolInvocation, ToolResult
from features.contracts.ui import UserInterface

__all__ = ["AnsweringPerson", "LocalBus", "LoneApi", "NotedSession"]

E = TypeVar("E", bound=ExtensionEvent)
Handler = Callable[[Any], Awaitable[None]]


class NotedSession:
    """Implements ``SessionView``; a test sets what it wants to be read."""

    def __init__(self, workspace: Path) -> None:
        self.id = "session-1"
        self.name = "Rome"
        self.address = "telegram:1"
        self.workspace = workspace
        self.time_zone = "Europe/Vienna"
        self.model = Model(provider="scripted", id="one", api="scripted")
        self.thinking: ThinkingLevel = "off"
        self.leaf_id: str | None = None
        self.running = False
        self.queued = 0
        self.messages: list[Message] = []
        self.entries: list[SessionEntry] = []

    def branch(self) -> Sequence[SessionEntry]:
        return self.entries

    def context_tokens(self) -> int:
        return 0


class AnsweringPerson:
    """Implements ``UserInterface``: gives the next of ``answers`` to each question, and the safe answer once there are none.

    ``asked`` and ``told`` keep what the person read.
    """

    def __init__(self, *answers: Any) -> None:
        self.interactive = True
        self.answers = list(answers)
        self.asked: list[str] = []
        self.told: list[str] = []

    async def confirm(self, title: str, message: str = "", *, timeout_s: float | None = None) -> bool:
        return self._next(f"{title}\n{message}") is True

    async def select(
        self, title: str, options: Sequence[str], *, timeout_s: float | None = None, owners_only: Sequence[str] = ()
    ) -> str | None:
        answer = self._next("\n".join([title, *options]))
        return answer if answer in options else None

    async def input(self, title: str, placeholder: str = "", *, timeout_s: float | None = None) -> str | None:
        return cast("str | None", self._next(title))

    def status(self, key: str, text: str | None) -> None:
        self.told.append(f"{key}: {text}")

    async def notify(self, message: str, kind: Literal["info", "warning", "error"] = "info") -> None:
        self.told.append(message)

    def _next(self, question: str) -> Any:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else None


class LocalBus:
    """Implements ``EventBus``."""

    def __init__(self) -> None:
        self._topics: list[tuple[str, Handler]] = []

    def subscribe(self, topic: str, handler: Handler) -> Callable[[], None]:
        return _kept(self._topics, (topic, handler))

    async def publish(self, topic: str, payload: Any) -> None:
        for known, handler in list(self._topics):
            if known == topic:
                await handler(payload)


class _State(msgspec.Struct, frozen=True):
    """A point of the branch. ``change`` is a key and its value, None where it was deleted."""

    parent: str | None
    key: str
    change: tuple[Any] | None


class LoneApi:
    """Implements ``ExtensionApi``: keeps what an extension registers, and lets a test play the session.

    ``happens`` hands an event to the handlers, ``uses`` calls a tool, ``says`` a command; ``noted`` is what the extension reads of the
    session. State is kept by branch: ``noted.leaf_id`` is the present point, and ``move_to`` goes to another. ``deeds`` holds what else
    the extension wanted done, each call with its arguments.

    Args:
        activate: the extension.
        execute: what ``exec`` does; by default every program succeeds and says nothing.
    """

    def __init__(
        self,
        activate: Activate,
        *,
        workspace: Path,
        config: Mapping[str, Any] | None = None,
        person: AnsweringPerson | None = None,
        clock: Clock | None = None,
        execute: Callable[[Sequence[str]], ExecResult] = lambda argv: ExecResult(output="", code=0, killed=False),
    ) -> None:
        self.name = "lone"
        self.config: Mapping[str, Any] = config or {}
        self.noted = NotedSession(workspace)
        self.session: SessionView = self.noted
        self.person = person or AnsweringPerson()
        self.ui: UserInterface = self.person
        self.bus: EventBus = LocalBus()
        self.clock: Clock = clock or FakeClock()
        self.handlers: list[tuple[int, type[ExtensionEvent], Handler]] = []
        self.tools: list[Tool] = []
        self.known_commands: list[ExtensionCommand] = []
        self.providers: list[tuple[Provider, Sequence[Model]]] = []
        self.renderers: list[tuple[str, MessageRenderer]] = []
        self.contexts: dict[str, str] = {}
        self.deeds: list[tuple[Any, ...]] = []
        self._activate = activate
        self._execute = execute
        self._points: dict[str, _State] = {}
        self._ids = count(1)

    async def activated(self) -> "LoneApi":
        await self._activate(self)
        return self

    # What a test does

    async def happens(self, event: E) -> E:
        """Hand an event to its handlers, in their order, within its deadline; what they raise is the test's to see."""
        for _, kind, handler in sorted(self.handlers, key=lambda entry: -entry[0]):
            if isinstance(event, kind):
                async with asyncio.timeout(event.deadline_s):
                    await handler(event)
                if getattr(event, "refusal", None) is not None:
                    break
        return event

    async def uses(self, tool: str, **arguments: Any) -> ToolResult:
        (found,) = [one for one in self.tools if one.spec.name == tool]
        workspace = self.session.workspace
        context = ToolContext(address=self.session.address, session_id=self.session.id, workspace=workspace, scratch=workspace)
        return await found.run(ToolInvocation(id="call-1", arguments=arguments, context=context, report=lambda text: None))

    async def says(self, text: str) -> str:
        """What a command answers, written with its slash."""
        name, _, arguments = text.removeprefix("/").partition(" ")
        (found,) = [one for one in self.known_commands if one.name == name]
        result = await found.run(arguments)
        return result.text if result is not None else ""

    # What an extension does

    def on(self, event: type[E], handler: Callable[[E], Awaitable[None]], *, priority: int = 0) -> Callable[[], None]:
        entry: tuple[int, type[ExtensionEvent], Handler] = (priority, event, handler)
        return _kept(self.handlers, entry)

    def register_tool(self, tool: Tool) -> Callable[[], None]:
        return _kept(self.tools, tool)

    def register_command(self, command: ExtensionCommand) -> Callable[[], None]:
        return _kept(self.known_commands, command)

    def register_provider(self, provider: Provider, models: Sequence[Model]) -> Callable[[], None]:
        return _kept(self.providers, (provider, models))

    def register_renderer(self, custom_type: str, renderer: MessageRenderer) -> Callable[[], None]:
        return _kept(self.renderers, (custom_type, renderer))

    def state(self, key: str, default: Any = None) -> Any:
        point = self.session.leaf_id
        while point is not None:
            found = self._points[point]
            if found.key == key:
                return msgspec.json.decode(found.change[0]) if found.change is not None else default
            point = found.parent
        return default

    async def set_state(self, key: str, value: Any) -> None:
        self._append(key, (msgspec.json.encode(value),))

    async def delete_state(self, key: str) -> None:
        self._append(key, None)

    async def model_context(self, id: str, text: str | None, *, place: Literal["system_prompt", "message"] = "message") -> None:
        if text is None:
            self.contexts.pop(id, None)
        else:
            self.contexts[id] = text

    async def append_entry(self, custom_type: str, data: Any = None) -> str:
        self.deeds.append(("append_entry", custom_type, data))
        return self._append(f"entry {custom_type}", (msgspec.json.encode(data),))

    async def send_message(
        self,
        custom_type: str,
        content: str | list[UserBlock],
        *,
        display: bool = True,
        details: Any = None,
        deliver: Literal["now", "steer", "follow_up", "next_turn"] = "now",
    ) -> None:
        self.deeds.append(("send_message", custom_type, content, deliver))

    def follow_up(self, id: str, text: str) -> bool:
        fresh = not any(deed[:2] == ("follow_up", id) for deed in self.deeds)
        if fresh:
            self.deeds.append(("follow_up", id, text))
        return fresh

    async def prompt(self, text: str) -> None:
        self.deeds.append(("prompt", text))

    async def set_model(self, reference: str) -> None:
        self.deeds.append(("set_model", reference))

    async def set_thinking(self, level: ThinkingLevel) -> None:
        self.deeds.append(("set_thinking", level))

    async def set_session_name(self, name: str) -> None:
        self.deeds.append(("set_session_name", name))

    async def set_label(self, entry_id: str, label: str | None) -> None:
        self.deeds.append(("set_label", entry_id, label))

    async def compact(self, instructions: str = "") -> None:
        self.deeds.append(("compact", instructions))

    async def move_to(self, entry_id: str | None) -> None:
        self.noted.leaf_id = entry_id

    async def fork(self, entry_id: str | None = None) -> str:
        self.deeds.append(("fork", entry_id))
        return "session-2"

    async def new_session(self, name: str = "") -> str:
        self.deeds.append(("new_session", name))
        return "session-2"

    async def switch_session(self, session_id: str) -> None:
        self.deeds.append(("switch_session", session_id))

    async def reload(self) -> None:
        self.deeds.append(("reload",))

    async def abort(self) -> None:
        self.deeds.append(("abort",))

    def commands(self) -> tuple[str, ...]:
        return tuple(command.name for command in self.known_commands)

    def system_prompt(self) -> str:
        return "You are an agent under test."

    def active_tools(self) -> tuple[str, ...]:
        return tuple(tool.spec.name for tool in self.tools)

    def all_tools(self) -> tuple[str, ...]:
        return self.active_tools()

    def set_active_tools(self, names: Sequence[str]) -> None:
        self.deeds.append(("set_active_tools", tuple(names)))

    async def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: timedelta = timedelta(seconds=30),
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ExecResult:
        self.deeds.append(("exec", tuple(argv)))
        return self._execute(argv)

    def _append(self, key: str, change: tuple[bytes] | None) -> str:
        point = f"entry-{next(self._ids)}"
        self._points[point] = _State(self.session.leaf_id, key, change)
        self.noted.leaf_id = point
        return point


T = TypeVar("T")


def _kept(things: list[T], thing: T) -> Callable[[], None]:
    """Keep it; gives what takes it back, once."""
    things.append(thing)

    def take_back() -> None:
        if thing in things:
            things.remove(thing)

    return take_back
