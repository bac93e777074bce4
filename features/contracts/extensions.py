"""The extension API: what a feature, or somebody's own code, can add to a session.

An extension is one function, ``async def activate(api: ExtensionApi) -> None``. It runs once per session, in two phases: what it registers
is collected, and counts only once the function has returned; one that fails leaves no trace but an ``extension_error``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from features.contracts.clock import Clock
from features.contracts.extension_events import ExtensionEvent
from features.contracts.messages import Message, UserBlock
from features.contracts.models import Model, Provider, ThinkingLevel
from features.contracts.sessions import SessionEntry
from features.contracts.tools import Tool
from features.contracts.ui import UserInterface

__all__ = [
    "Activate",
    "CommandResult",
    "EventBus",
    "ExecResult",
    "ExtensionApi",
    "ExtensionCommand",
    "ExtensionSpec",
    "MessageRenderer",
    "SessionView",
]

E = TypeVar("E", bound=ExtensionEvent)


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a command says to the chat; nothing for an empty text."""

    text: str = ""


class ExtensionCommand(msgspec.Struct, frozen=True, kw_only=True):
    """``run`` gets what stands after the name. It runs at once, also while an answer is being written."""

    name: str
    description: str
    run: Callable[[str], Awaitable[CommandResult | None]]
    complete: Callable[[str], Sequence[str]] | None = None


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    """``code`` is negative for a signal; ``killed`` says that the time ran out. ``output`` holds both streams, at most 1 MiB, redacted."""

    output: str
    code: int
    killed: bool


MessageRenderer = Callable[[str, Any], str]
"""Custom message text and details to the Markdown that people see."""


class EventBus(Protocol):
    """Topics between the extensions of one session. A handler that raises is reported; the others still hear it."""

    def subscribe(self, topic: str, handler: Callable[[Any], Awaitable[None]]) -> Callable[[], None]: ...

    async def publish(self, topic: str, payload: Any) -> None: ...


class SessionView(Protocol):
    """The session as an extension reads it. ``running`` is False again in handlers of ``AgentSettled``."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def workspace(self) -> Path: ...

    @property
    def time_zone(self) -> str: ...

    @property
    def model(self) -> Model: ...

    @property
    def thinking(self) -> ThinkingLevel: ...

    @property
    def leaf_id(self) -> str | None: ...

    @property
    def running(self) -> bool: ...

    @property
    def queued(self) -> int: ...

    @property
    def messages(self) -> Sequence[Message]: ...

    def branch(self) -> Sequence[SessionEntry]: ...

    def context_tokens(self) -> int: ...


class ExtensionApi(Protocol):
    """Contract.

    - ``on`` and the ``register_*`` methods may be called while activating and later; each returns a function that takes it back.
    - Everything else raises RuntimeError until activation is over.
    - What starts a run or changes which session or branch is at work (``prompt``, ``set_model``, ``compact``, ``move_to``, ``fork``,
      ``new_session``, ``switch_session``, ``reload``) is refused with ReentrantCallError inside a handler of this session and inside
      a running tool; ``follow_up`` is what to use there. Commands may call all of it.
    - ``state`` is durable and follows the branch; nobody but this extension sees it. JSON values, 64 KiB an entry, 4 MiB in all.
    - ``model_context`` puts a text into every request until it is taken back with None; the same ``id`` replaces it in place.
    - ``follow_up`` queues a prompt for after the run has settled: at most 32, the same ``id`` once, 16 runs in a row.
    - ``exec`` goes through the spawn policy and ends with the session.
    - A handler that fails three times in a row takes the extension out of the session.
    """

    name: str
    config: Mapping[str, Any]
    session: SessionView
    ui: UserInterface
    bus: EventBus
    clock: Clock

    def on(self, event: type[E], handler: Callable[[E], Awaitable[None]], *, priority: int = 0) -> Callable[[], None]: ...

    def register_tool(self, tool: Tool) -> Callable[[], None]: ...

    def register_command(self, command: ExtensionCommand) -> Callable[[], None]: ...

    def register_provider(self, provider: Provider, models: Sequence[Model]) -> Callable[[], None]: ...

    def register_renderer(self, custom_type: str, renderer: MessageRenderer) -> Callable[[], None]: ...

    def state(self, key: str, default: Any = None) -> Any: ...

    async def set_state(self, key: str, value: Any) -> None: ...

    async def delete_state(self, key: str) -> None: ...

    async def model_context(self, id: str, text: str | None, *, place: Literal["system_prompt", "message"] = "message") -> None: ...

    async def append_entry(self, custom_type: str, data: Any = None) -> str: ...

    async def send_message(
        self,
        custom_type: str,
        content: str | list[UserBlock],
        *,
        display: bool = True,
        details: Any = None,
        deliver: Literal["now", "steer", "follow_up", "next_turn"] = "now",
    ) -> None: ...

    def follow_up(self, id: str, text: str) -> bool: ...

    async def prompt(self, text: str) -> None: ...

    async def set_model(self, reference: str) -> None: ...

    async def set_thinking(self, level: ThinkingLevel) -> None: ...

    async def set_session_name(self, name: str) -> None: ...

    async def set_label(self, entry_id: str, label: str | None) -> None: ...

    async def compact(self, instructions: str = "") -> None: ...

    async def move_to(self, entry_id: str | None) -> None: ...

    async def fork(self, entry_id: str | None = None) -> str: ...

    async def new_session(self, name: str = "") -> str: ...

    async def switch_session(self, session_id: str) -> None: ...

    async def reload(self) -> None: ...

    async def abort(self) -> None: ...

    def commands(self) -> tuple[str, ...]: ...

    def system_prompt(self) -> str: ...

    def active_tools(self) -> tuple[str, ...]: ...

    def all_tools(self) -> tuple[str, ...]: ...

    def set_active_tools(self, names: Sequence[str]) -> None: ...

    async def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: timedelta = timedelta(seconds=30),
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ExecResult: ...


Activate = Callable[[ExtensionApi], Awaitable[None]]


class ExtensionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An extension as the host knows it. ``origin`` says where it came from; ``priority`` higher is asked earlier; ``config`` is the
    extension's own table of the configuration."""

    name: str
    activate: Activate
    origin: str = "built in"
    priority: int = 0
    config: Mapping[str, Any] = {}
