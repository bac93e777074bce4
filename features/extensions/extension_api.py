"""What an extension is handed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from features.contracts.agent import Prompt
from features.contracts.errors import ReentrantCallError
from features.contracts.extension_events import ExtensionEvent, MessageEnding, ModelSelected, ProcessSpawning
from features.contracts.extensions import EventBus, ExecResult, ExtensionCommand, MessageRenderer, SessionView
from features.contracts.messages import UserBlock
from features.contracts.models import THINKING_LEVELS, Model, Provider, ThinkingLevel
from features.contracts.tools import Tool
from features.contracts.ui import UserInterface
from features.extensions.at_work import begins, owner_at_work, waiting_for
from features.extensions.branch_state import RESERVED
from features.extensions.event_bus import Topics
from features.extensions.event_changes import CUSTOM_TYPE
from features.extensions.follow_ups import FollowUp
from features.extensions.instance import Instance
from features.extensions.session_port import Deliver
from features.extensions.session_reading import SessionReading

if TYPE_CHECKING:
    from features.extensions.extension_runner import ExtensionRunner

__all__ = ["SessionApi"]

E = TypeVar("E", bound=ExtensionEvent)
TakeBack = Callable[[], None]
_DELIVER = ("now", "steer", "follow_up", "next_turn")


class SessionApi:
    """Implements ``ExtensionApi`` for one extension in one session."""

    def __init__(self, runner: "ExtensionRunner", instance: Instance, ui: UserInterface) -> None:
        self.name = instance.name
        self.config: Mapping[str, Any] = instance.spec.config
        self.session: SessionView = SessionReading(runner.port)
        self.clock = runner.clock
        self.ui = ui
        self.bus: EventBus = _Bus(instance, runner.topics)
        self._runner = runner
        self._instance = instance
        self._port = runner.port

    # Registrations

    def on(self, event: type[E], handler: Callable[[E], Awaitable[None]], *, priority: int = 0) -> TakeBack:
        return self._runner.registrations.listen(self._instance, event, handler, priority)

    def register_tool(self, tool: Tool) -> TakeBack:
        return self._runner.registrations.tool(self._instance, tool)

    def register_command(self, command: ExtensionCommand) -> TakeBack:
        return self._runner.registrations.command(self._instance, command)

    def register_provider(self, provider: Provider, models: Sequence[Model]) -> TakeBack:
        return self._runner.registrations.provider(self._instance, provider, models)

    def register_renderer(self, custom_type: str, renderer: MessageRenderer) -> TakeBack:
        return self._runner.registrations.renderer(self._instance, custom_type, renderer)

    # What is kept on the branch

    def state(self, key: str, default: Any = None) -> Any:
        self._instance.check_active()
        return self._runner.state.get(self.name, key, default)

    async def set_state(self, key: str, value: Any) -> None:
        self._instance.check_active()
        await self._runner.state.set(self.name, key, value)

    async def delete_state(self, key: str) -> None:
        self._instance.check_active()
        await self._runner.state.delete(self.name, key)

    async def model_context(self, id: str, text: str | None, *, place: Literal["system_prompt", "message"] = "message") -> None:
        self._instance.check_active()
        await self._runner.state.set_context(self.name, id, text, place)

    async def append_entry(self, custom_type: str, data: Any = None) -> str:
        self._instance.check_active()
        _check_custom_type(custom_type)
        return await self._runner.state.append(custom_type, data)

    async def send_message(
        self,
        custom_type: str,
        content: str | list[UserBlock],
        *,
        display: bool = True,
        details: Any = None,
        deliver: Deliver = "now",
    ) -> None:
        self._instance.check_active()
        _check_custom_type(custom_type)
        if deliver not in _DELIVER:
            raise ValueError(f"deliver is {deliver!r}; it must be one of {', '.join(_DELIVER)}")
        message = self._port.new_message(custom_type, content, display=display, details=details)
        # A message that a handler of message_end sends would bring that handler back.
        hooked = waiting_for(self._runner, MessageEnding) is None
        chained = waiting_for(self._runner) is not None
        owner = owner_at_work() or False
        await self._port.send(message, deliver, extension=self.name, owner=owner, hooked=hooked, chained=chained)

    # Runs

    def follow_up(self, id: str, text: str) -> bool:
        self._instance.check_active()
        taken = self._runner.follow_ups.put(FollowUp(self.name, id, text, owner_at_work() or False))
        if taken:
            self._port.follow_up_waits()
        return taken

    async def prompt(self, text: str) -> None:
        self._check_free("prompt")
        if not text.strip():
            raise ValueError("a prompt needs a text")
        prompt = Prompt(text=text, owner=owner_at_work() or False, source="extension")
        await self._port.start(prompt, extension=self.name, id=self._port.new_id())

    async def abort(self) -> None:
        self._instance.check_active()
        await self._port.abort(wait=waiting_for(self._runner) is None)

    # The session

    async def set_model(self, reference: str) -> None:
        self._check_free("set_model")
        await self._port.set_model(reference)

    async def set_thinking(self, level: ThinkingLevel) -> None:
        self._instance.check_active()
        if level not in THINKING_LEVELS:
            raise ValueError(f"{level!r} is no thinking level; there are {', '.join(THINKING_LEVELS)}")
        if (what := waiting_for(self._runner, ModelSelected)) is not None:
            raise ReentrantCallError(f"set_thinking cannot be called in {what}, which it would call again")
        await self._port.set_thinking(level)

    async def set_session_name(self, name: str) -> None:
        self._instance.check_active()
        await self._port.set_name(name)

    async def set_label(self, entry_id: str, label: str | None) -> None:
        self._instance.check_active()
        await self._port.set_label(entry_id, label)

    async def compact(self, instructions: str = "") -> None:
        self._check_free("compact")
        await self._port.compact(instructions)

    async def move_to(self, entry_id: str | None) -> None:
        self._check_free("move_to")
        await self._port.move_to(entry_id)

    async def fork(self, entry_id: str | None = None) -> str:
        self._check_free("fork")
        return await self._port.fork(entry_id)

    async def new_session(self, name: str = "") -> str:
        self._check_free("new_session")
        return await self._port.new_session(name)

    async def switch_session(self, session_id: str) -> None:
        self._check_free("switch_session")
        await self._port.switch_session(session_id)

    async def reload(self) -> None:
        self._check_free("reload")
        await self._port.reload()

    # What there is

    def commands(self) -> tuple[str, ...]:
        self._instance.check_active()
        return (*self._runner.host_commands, *(command.name for command in self._runner.commands()))

    def system_prompt(self) -> str:
        self._instance.check_active()
        return self._port.system_prompt()

    def active_tools(self) -> tuple[str, ...]:
        self._instance.check_active()
        return tuple(tool.spec.name for tool in self._runner.tools.active)

    def all_tools(self) -> tuple[str, ...]:
        self._instance.check_active()
        return tuple(tool.spec.name for tool in self._runner.tools.all)

    def set_active_tools(self, names: Sequence[str]) -> None:
        self._instance.check_active()
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise ValueError("names must be a list of the names of tools")
        self._runner.tools.off = frozenset(self.all_tools()) - frozenset(names)

    async def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: timedelta = timedelta(seconds=30),
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ExecResult:
        self._instance.check_active()
        if isinstance(argv, str) or not argv or not all(isinstance(part, str) for part in argv):
            raise ValueError("argv must be a list of texts, the program first")
        if (what := waiting_for(self._runner, ProcessSpawning)) is not None:
            raise ReentrantCallError(f"exec cannot be called in {what}, which it would call again")
        owner = owner_at_work() or False

        async def run() -> ExecResult:
            with begins("command", self._runner, owner=owner):  # so that spawn hooks know the session, whatever task this comes from
                return await self._port.exec(tuple(argv), timeout=timeout, cwd=cwd, environment=dict(environment or {}), owner=owner)

        return await self._runner.owned(run())

    def _check_free(self, what: str) -> None:
        """
        Raises:
            ReentrantCallError: what waits for the caller would have to end first.
        """
        self._instance.check_active()
        if (waiting := waiting_for(self._runner)) is not None:
            raise ReentrantCallError(f"{what} cannot be called in {waiting}, which the session waits for; use follow_up")


class _Bus:
    """Implements ``EventBus`` for one extension."""

    def __init__(self, instance: Instance, topics: Topics) -> None:
        self._instance = instance
        self._topics = topics

    def subscribe(self, topic: str, handler: Callable[[Any], Awaitable[None]]) -> TakeBack:
        self._topics.check(topic, handler)
        return self._instance.register(lambda: self._topics.subscribe(self._instance, topic, handler))

    async def publish(self, topic: str, payload: Any) -> None:
        self._instance.check_active()
        await self._topics.publish(topic, payload)


def _check_custom_type(custom_type: str) -> None:
    if not CUSTOM_TYPE.fullmatch(custom_type):
        raise ValueError(f"{custom_type[:80]!r} is no custom type; use 1 to 128 letters, digits, dots, hyphens and underscores")
    if custom_type.startswith(RESERVED):
        raise ValueError(f"custom types that begin with {RESERVED!r} are the host's own")
