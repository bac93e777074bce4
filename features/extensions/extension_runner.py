"""The entry type of the slice, for sessions."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

from features.contracts.clock import Clock, unix_ms
from features.contracts.errors import PumiceError, UserMustAct
from features.contracts.events import ExtensionError
from features.contracts.extension_events import (
    ExtensionEvent,
    GateEvent,
    MessageStarted,
    MessageUpdated,
    ProcessSpawning,
    ToolCalled,
    ToolExecutionUpdated,
)
from features.contracts.extensions import CommandResult, ExtensionCommand, ExtensionSpec
from features.contracts.messages import CustomMessage, message_text
from features.contracts.tools import Tool
from features.contracts.ui import UserInterface
from features.extensions.at_work import begins
from features.extensions.branch_state import BranchState
from features.extensions.event_bus import Topics
from features.extensions.event_changes import WrongChange, check_gate, take_over, working_copy
from features.extensions.extension_api import SessionApi
from features.extensions.follow_ups import FollowUps
from features.extensions.handlers import Handler
from features.extensions.in_time import Guarded, WrongReturn
from features.extensions.instance import Instance
from features.extensions.live_updates import LiveUpdates
from features.extensions.no_person import NoPerson
from features.extensions.registrations import Registrations
from features.extensions.session_port import SessionPort
from features.extensions.tool_stacks import ToolStacks

__all__ = ["ExtensionRunner"]

log = logging.getLogger("pumice.extensions")

E = TypeVar("E", bound=ExtensionEvent)
T = TypeVar("T")

_ACTIVATION_S = 10.0
_COMMAND_S = 900.0
_BUS_S = 0.5
_FAILURES_IN_A_ROW = 3
_STAY_SHUT: tuple[type[GateEvent], ...] = (ToolCalled, ProcessSpawning)
"""What an extension that guarded it and broke leaves forbidden: a guard that is gone must not be a door that stands open."""


class ExtensionRunner:
    """The extensions of one session. Without any it costs a look into an empty table per event.

    Args:
        tools: the session's own.
        host_commands: names that no extension can have.
        ui: asks the person of this session; None where there is none.
    """

    def __init__(
        self,
        port: SessionPort,
        *,
        clock: Clock,
        tools: Sequence[Tool] = (),
        host_commands: Collection[str] = (),
        ui: UserInterface | None = None,
    ) -> None:
        self.port = port
        self.clock = clock
        self.host_commands = tuple(host_commands)
        self.tools = ToolStacks(tools)
        self.state = BranchState(port, lambda: unix_ms(clock.now()))
        self.follow_ups = FollowUps()
        self.topics = Topics(self._deliver)
        self.updates = LiveUpdates(self.dispatch)
        self.registrations = Registrations(port, self.tools, host_commands=host_commands, conflict=self._conflict)
        self._ui = NoPerson() if ui is None else ui
        self._guarded = Guarded(clock)
        self._instances: list[Instance] = []
        self._shut: dict[type[ExtensionEvent], str] = {}
        self._owned: set[asyncio.Task[Any]] = set()

    @property
    def owner(self) -> bool:
        """Whether an owner of the host asked for the run that is going on."""
        return self.port.owner

    @property
    def states(self) -> dict[str, str]:
        """By extension: ``active``, or why not."""
        return {instance.name: instance.state for instance in self._instances}

    @property
    def active(self) -> bool:
        """Whether there is any extension at work."""
        return any(instance.active for instance in self._instances)

    # Beginning and end

    async def activate(self, specs: Sequence[ExtensionSpec]) -> None:
        """Activate them, higher priority first. One that fails is told of and leaves nothing behind."""
        for order, spec in enumerate(sorted(specs, key=lambda spec: -spec.priority)):
            instance = Instance(spec, order)
            if spec.name in self.states:
                self._report(spec.name, "activate", f"there is another extension of that name; {spec.origin} is left out")
                continue
            self._instances.append(instance)
            api = SessionApi(self, instance, self._ui)
            try:
                with begins("handler", self, owner=False):
                    await self._guarded.run(lambda: spec.activate(api), _ACTIVATION_S, name=f"activate {spec.name}")  # noqa: B023 - awaited here
            except asyncio.CancelledError:
                raise
            except Exception as error:
                instance.end(f"failed: {_words(error)}")
                self._report(spec.name, "activate", _words(error), error)
            else:
                instance.commit()

    async def close(self) -> None:
        """Take back everything, the last extension first; what they still do is ended."""
        for instance in reversed(self._instances):
            instance.end("the session is closed")
        self.follow_ups.drop()
        await self.updates.close()
        for task in tuple(self._owned):
            task.cancel()
        if self._owned:
            await asyncio.wait(self._owned)
        await self._guarded.close()

    async def owned(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that ends with the session at the latest."""
        task = asyncio.create_task(work)
        self._owned.add(task)
        task.add_done_callback(self._owned.discard)
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

    # Events

    def wants(self, event: type[ExtensionEvent]) -> bool:
        """Whether it is worth making one."""
        return event in self.registrations.handlers or event in self._shut

    async def dispatch(self, event: E) -> E:
        """Hand an event to its handlers; gives the event, as they have left it. Raises nothing but the caller's own cancellation."""
        for handler in self.registrations.handlers.of(type(event)):
            if handler.instance.active:
                await self._hand(event, handler)
            if isinstance(event, GateEvent) and event.refusal is not None:
                return event
        if isinstance(event, GateEvent) and type(event) in self._shut:
            event.refusal = (
                f"the extension {self._shut[type(event)]!r}, which has a say in this, has failed and was taken out; "
                "nothing of it is allowed until an owner loads it again with /reload"
            )
        return event

    def update(self, event: MessageStarted | MessageUpdated | ToolExecutionUpdated) -> None:
        """Hand on a piece of something that grows, without waiting."""
        if self.wants(type(event)):
            self.updates.put(event)

    async def _hand(self, event: ExtensionEvent, handler: Handler) -> None:
        failure: Exception
        try:
            given = working_copy(event) if event.kind == "transform" else event
            await self._call(handler, given, event.deadline_s, event=type(event))
            if event.kind == "transform":
                take_over(event, given)
            elif isinstance(event, GateEvent):
                check_gate(event)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            failure = error
        else:
            handler.failures = 0
            return
        if isinstance(event, GateEvent):
            event.refusal = f"a check by the extension {handler.instance.name!r} failed, so the answer is no"
        self._failed(handler, event.name, failure)

    async def _call(self, handler: Handler, given: Any, seconds: float, *, event: type[ExtensionEvent] | None = None) -> None:
        name = f"{event.name if event is not None else 'bus'} of {handler.instance.name}"
        with begins("handler", self, owner=self.owner, event=event):
            returned = await self._guarded.run(lambda: handler.run(given), seconds, name=name)
        if returned is not None:
            raise WrongReturn(f"it gave back {type(returned).__name__}; a handler gives nothing back and calls a method of its event")

    async def _deliver(self, handler: Handler, topic: str, payload: Any) -> None:
        try:
            await self._call(handler, payload, _BUS_S)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._failed(handler, f"bus {topic}", error)
        else:
            handler.failures = 0

    # What else they bring

    def commands(self) -> tuple[ExtensionCommand, ...]:
        return tuple(command for _, command in self.owned_commands())

    def owned_commands(self) -> list[tuple[str, ExtensionCommand]]:
        """Commands with the extensions that bring them."""
        return [(owner, command) for _, owner, command in self.registrations.commands]

    async def run_command(self, name: str, arguments: str, *, owner: bool) -> CommandResult:
        """
        Raises:
            KeyError: there is no such command.
            PumiceError: what the command says about itself, or that it is broken; a text for the person.
        """
        found = self.registrations.commands.get(name)
        if found is None:
            raise KeyError(name)
        extension, command = found
        try:
            with begins("command", self, owner=owner):
                result = await self._guarded.run(lambda: command.run(arguments), _COMMAND_S, name=f"/{name} of {extension}")
            if result is not None and not isinstance(result, CommandResult):
                raise WrongReturn(f"it gave back {type(result).__name__}, no CommandResult")
            if result is not None and not isinstance(result.text, str):
                raise WrongReturn(f"its CommandResult holds {type(result.text).__name__}, no text")
        except PumiceError:
            raise
        except Exception as error:
            self._report(extension, f"command /{name}", _words(error), error)
            raise UserMustAct(f"/{name} of the extension {extension!r} failed: {_words(error)}") from error
        return result or CommandResult()

    def rendered(self, message: CustomMessage) -> str:
        """A custom message as people read it, in Markdown."""
        text = message_text(message)
        found = self.registrations.renderers.get(message.custom_type)
        if found is None:
            return text
        extension, (_, renderer) = found
        try:
            shown = renderer(text, message.details)
            if not isinstance(shown, str):
                raise WrongReturn(f"it gave back {type(shown).__name__}, no text")
        except Exception as error:
            self._report(extension, f"renderer of {message.custom_type}", _words(error), error)
            return text
        return shown

    def prompt_sections(self) -> list[str]:
        """What stands at the end of the system prompt."""
        return self.state.system_prompt_sections(self._active()) if self._instances else []

    def context_messages(self) -> list[CustomMessage]:
        """What is among the messages of every request."""
        return self.state.context_messages(self._active()) if self._instances else []

    def _active(self) -> frozenset[str]:
        return frozenset(instance.name for instance in self._instances if instance.active)

    # Failures

    def _failed(self, handler: Handler, what: str, error: Exception) -> None:
        instance = handler.instance
        self._report(instance.name, what, _words(error), error)
        handler.failures += 1
        if handler.failures >= _FAILURES_IN_A_ROW and instance.active:
            guarded = self.registrations.handlers.events_of(instance)
            self._shut.update({gate: instance.name for gate in _STAY_SHUT if gate in guarded})
            instance.end(f"failed: its handler of {what} failed {_FAILURES_IN_A_ROW} times in a row")
            self.follow_ups.drop(instance.name)
            self._report(instance.name, what, f"taken out of this session after {_FAILURES_IN_A_ROW} failures in a row")

    def _conflict(self, instance: Instance, text: str) -> None:
        self._report(instance.name, "register", text)

    def _report(self, extension: str, what: str, text: str, error: Exception | None = None) -> None:
        facts = {"extension": extension, "event": what, "session": self.port.id}
        expected = error is None or isinstance(error, PumiceError | WrongReturn | WrongChange | TimeoutError)
        log.warning("extension failed", exc_info=None if expected else error, extra={"facts": facts})
        self.port.report(ExtensionError(extension=extension, event=what, error=text))


def _words(error: Exception) -> str:
    text = str(error)
    if isinstance(error, PumiceError | WrongReturn | WrongChange | TimeoutError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
