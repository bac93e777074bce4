"""What extensions add to a session, looked at before it counts."""

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import msgspec

from features.contracts.extension_events import EXTENSION_EVENTS, ExtensionEvent
from features.contracts.extensions import ExtensionCommand, MessageRenderer
from features.contracts.models import Model, Provider
from features.contracts.tools import Tool
from features.extensions.event_changes import CUSTOM_TYPE
from features.extensions.handlers import MOST_PRIORITY, Handler, Handlers
from features.extensions.instance import Instance
from features.extensions.session_port import SessionPort
from features.extensions.stacks import Stacks
from features.extensions.tool_stacks import ToolStacks

__all__ = ["Registrations"]

TakeBack = Callable[[], None]

_COMMAND = re.compile(r"[a-z][a-z0-9_]{0,31}")
_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_DESCRIPTION = 256
_MAX_TOOL_BYTES = 16 * 1024
_EVENTS = frozenset(EXTENSION_EVENTS)


class Registrations:
    """Wrong ones raise ValueError at once. Of two that claim one name the first is used; the other is told of and waits for its turn.

    Args:
        conflict: told of a registration that is not used, with the extension and what stands in its way.
    """

    def __init__(
        self, port: SessionPort, tools: ToolStacks, *, host_commands: Collection[str], conflict: Callable[[Instance, str], None]
    ) -> None:
        self.handlers = Handlers()
        self.tools = tools
        self.commands: Stacks[ExtensionCommand] = Stacks()
        self.renderers: Stacks[tuple[Instance, MessageRenderer]] = Stacks()
        self._port = port
        self._host_commands = frozenset(host_commands)
        self._conflict = conflict

    def listen(self, instance: Instance, event: type[ExtensionEvent], handler: Callable[[Any], Awaitable[None]], priority: int) -> TakeBack:
        if event not in _EVENTS:
            raise ValueError(f"{event!r} is none of the events of features.contracts.extension_events")
        if not callable(handler):
            raise ValueError(f"{handler!r} is no function")
        if not -MOST_PRIORITY <= priority <= MOST_PRIORITY:
            raise ValueError(f"priority is {priority!r}; it must be a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}")
        return instance.register(lambda: self.handlers.add(event, Handler(instance, handler, priority)))

    def tool(self, instance: Instance, tool: Tool) -> TakeBack:
        _check_tool(tool)

        def carry_out() -> TakeBack:
            before, remove = self.tools.add(instance.name, tool)
            self._tell(instance, f"tool {tool.spec.name!r}", before)
            return remove

        return instance.register(carry_out)

    def command(self, instance: Instance, command: ExtensionCommand) -> TakeBack:
        name: Any = command.name
        description: Any = command.description
        if not isinstance(name, str) or not _COMMAND.fullmatch(name):
            raise ValueError(f"{name!r} is no command name; use 1 to 32 of a-z, 0-9 and _, a letter first")
        if not isinstance(description, str) or not 0 < len(description) <= _LONGEST_DESCRIPTION or "\n" in description:
            raise ValueError(f"the description of /{name} must be one line of 1 to {_LONGEST_DESCRIPTION} characters")
        if not callable(command.run):
            raise ValueError(f"what /{name} runs is no function")

        def carry_out() -> TakeBack:
            if name in self._host_commands:
                self._tell(instance, f"command /{name}", "the host")
                return lambda: None
            before, remove = self.commands.add(instance.name, name, command)
            self._tell(instance, f"command /{name}", before)
            return remove

        return instance.register(carry_out)

    def provider(self, instance: Instance, provider: Provider, models: Sequence[Model]) -> TakeBack:
        name, offered = provider.name, tuple[Any, ...](models)
        if not offered or not all(isinstance(model, Model) and model.provider == name and model.id for model in offered):
            raise ValueError(f"provider {name!r} needs models, each with provider={name!r} and an id")

        def carry_out() -> TakeBack:
            try:
                self._port.add_provider(provider, offered)
            except ValueError as error:
                self._conflict(instance, str(error))
                return lambda: None
            return lambda: self._port.remove_provider(name)

        return instance.register(carry_out)

    def renderer(self, instance: Instance, custom_type: str, renderer: MessageRenderer) -> TakeBack:
        if not CUSTOM_TYPE.fullmatch(custom_type):
            raise ValueError(f"{custom_type!r} is no custom type; use 1 to 128 letters, digits, dots, hyphens and underscores")
        if not callable(renderer):
            raise ValueError(f"{renderer!r} is no function")

        def carry_out() -> TakeBack:
            before, remove = self.renderers.add(instance.name, custom_type, (instance, renderer))
            self._tell(instance, f"renderer of {custom_type!r}", before)
            return remove

        return instance.register(carry_out)

    def _tell(self, instance: Instance, what: str, before: str | None) -> None:
        if before is not None:
            whose = before if before == "the host" else f"the extension {before!r}"
            self._conflict(instance, f"its {what} is not used: {whose} has one of that name")


def _check_tool(tool: Tool) -> None:
    """
    Raises:
        ValueError: the tool could not be offered or run.
    """
    spec = getattr(tool, "spec", None)
    name = getattr(spec, "name", None)
    if not isinstance(name, str) or not _TOOL.fullmatch(name):
        raise ValueError(f"{name!r} is no tool name; use 1 to 64 letters, digits, hyphens and underscores")
    missing = [
        attribute for attribute in ("label", "prompt_snippet", "prompt_guidelines", "execution", "run") if not hasattr(tool, attribute)
    ]
    if missing:
        raise ValueError(f"tool {name!r} has no {', '.join(missing)}")
    assert spec is not None
    if not isinstance(spec.description, str) or not isinstance(spec.parameters, dict) or spec.parameters.get("type") != "object":
        raise ValueError(f"tool {name!r} needs a description and a JSON schema of type object")
    try:
        size = len(msgspec.json.encode(spec))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the schema of tool {name!r} is no JSON: {error}") from None
    if size > _MAX_TOOL_BYTES:
        raise ValueError(f"description and schema of tool {name!r} have {size} bytes; {_MAX_TOOL_BYTES} are all that they may")
