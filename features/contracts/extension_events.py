"""What an extension hears of, and how it takes part.

A handler gets the event object. Where it may decide or change something, the event has a method or a field for it; everything else is for
reading. Handlers run one after another, in order of priority and registration, and see what earlier ones did.

Three classes, by what happens when a handler raises or takes too long (``deadline_s``):

- *observe*: nothing; it is reported and the others go on.
- *transform*: its change is dropped, what earlier handlers made of it stands.
- *gate*: the answer is no.

A deadline is a time in which a handler must return; one that is late is cancelled and counts as failed.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Literal

from features.contracts.messages import AssistantMessage, ImageBlock, Message, ToolCall, ToolResultMessage, UserBlock
from features.contracts.models import Model, ModelRequest, ThinkingLevel
from features.contracts.processes import ProcessSpawnEvent
from features.contracts.sessions import CompactionEntry, SessionEntry

__all__ = [
    "EXTENSION_EVENTS",
    "AgentEnded",
    "AgentSettled",
    "AgentStarted",
    "BeforeAgentStart",
    "BeforeCompaction",
    "BeforeModelSelection",
    "BeforeProviderHeaders",
    "BeforeProviderPayload",
    "BeforeProviderRequest",
    "BeforeSessionDelete",
    "BeforeSessionFork",
    "BeforeSessionSwitch",
    "BeforeTree",
    "CompactionDone",
    "CompactionFailed",
    "ContextBuilding",
    "ExtensionEvent",
    "GateEvent",
    "InputReceived",
    "MessageEnding",
    "MessageStarted",
    "MessageUpdated",
    "ModelSelected",
    "ProcessSpawning",
    "ProviderFailed",
    "ProviderResponded",
    "ResourcesDiscovered",
    "RunFailed",
    "SessionForked",
    "SessionShutdown",
    "SessionStarted",
    "SessionSwitched",
    "ToolCalled",
    "ToolExecutionEnded",
    "ToolExecutionStarted",
    "ToolExecutionUpdated",
    "ToolResulted",
    "TreeMoved",
    "TurnEnded",
    "TurnStarted",
]


class ExtensionEvent:
    """Base. ``name`` is the event's name in logs, hooks and documents; ``deadline_s`` is how long one handler may take."""

    name: ClassVar[str]
    kind: ClassVar[Literal["observe", "transform", "gate"]] = "observe"
    deadline_s: ClassVar[float] = 0.5


class GateEvent(ExtensionEvent):
    """Something that a handler may forbid. The first that does ends the asking."""

    kind = "gate"

    def __init__(self) -> None:
        self.refusal: str | None = None

    def cancel(self, reason: str = "") -> None:
        """Forbid it; ``reason`` is shown to whoever asked for it."""
        self.refusal = reason or "an extension said no"


# --- the session -----------------------------------------------------------------------------------------------------------------------


class SessionStarted(ExtensionEvent):
    name, deadline_s = "session_start", 2.0

    def __init__(self, reason: Literal["startup", "new", "resume", "fork", "reload"]) -> None:
        self.reason = reason


class SessionShutdown(ExtensionEvent):
    name, deadline_s = "session_shutdown", 2.0

    def __init__(self, reason: Literal["quit", "evict", "switch", "delete", "reload"]) -> None:
        self.reason = reason


class ResourcesDiscovered(ExtensionEvent):
    """Skills and prompt templates are being looked for. Folders and files that handlers add are searched after the session's own."""

    name, kind, deadline_s = "resources_discover", "transform", 2.0

    def __init__(self, reason: Literal["startup", "reload"]) -> None:
        self.reason = reason
        self.skill_paths: list[Path] = []
        self.template_paths: list[Path] = []


class BeforeSessionSwitch(GateEvent):
    name = "session_before_switch"

    def __init__(self, reason: Literal["new", "resume"], target: str | None) -> None:
        super().__init__()
        self.reason = reason
        self.target = target


class SessionSwitched(ExtensionEvent):
    name = "session_switch"

    def __init__(self, reason: Literal["new", "resume"], previous: str) -> None:
        self.reason = reason
        self.previous = previous


class BeforeSessionFork(GateEvent):
    name = "session_before_fork"

    def __init__(self, entry_id: str) -> None:
        super().__init__()
        self.entry_id = entry_id


class SessionForked(ExtensionEvent):
    name = "session_fork"

    def __init__(self, previous: str) -> None:
        self.previous = previous


class BeforeSessionDelete(GateEvent):
    name = "session_before_delete"

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self.session_id = session_id


class BeforeTree(GateEvent):
    """The leaf is about to move. ``summary`` may be given where the person wanted one; ``instructions`` and ``label`` may be changed."""

    name, deadline_s = "session_before_tree", 30.0

    def __init__(
        self,
        target_id: str | None,
        leaving: Sequence[SessionEntry],
        *,
        wants_summary: bool,
        instructions: str,
        label: str | None,
    ) -> None:
        super().__init__()
        self.target_id = target_id
        self.leaving = leaving
        self.wants_summary = wants_summary
        self.instructions = instructions
        self.label = label
        self.summary: str | None = None


class TreeMoved(ExtensionEvent):
    name = "session_tree"

    def __init__(self, old_leaf: str | None, new_leaf: str | None) -> None:
        self.old_leaf = old_leaf
        self.new_leaf = new_leaf


# --- input and the run -----------------------------------------------------------------------------------------------------------------


class InputReceived(ExtensionEvent):
    """A person, a job or an extension says something. Change ``text`` and ``images``, or ``mark_handled`` to swallow it."""

    name, kind = "input", "transform"

    def __init__(self, text: str, images: tuple[ImageBlock, ...], source: Literal["person", "extension", "job"]) -> None:
        self.text = text
        self.images = images
        self.source = source
        self.handled = False
        self.reply: str | None = None

    def mark_handled(self, reply: str | None = None) -> None:
        """No run starts; ``reply`` is shown."""
        self.handled = True
        self.reply = reply


class BeforeAgentStart(ExtensionEvent):
    """A run is about to start. ``system_prompt`` holds for this run; messages that are added are stored with the prompt in one step."""

    name, kind = "before_agent_start", "transform"

    def __init__(self, prompt: str, images: tuple[ImageBlock, ...], system_prompt: str) -> None:
        self.prompt = prompt
        self.images = images
        self.system_prompt = system_prompt
        self.added: list[tuple[str, str, bool]] = []

    def add_message(self, custom_type: str, text: str, *, display: bool = True) -> None:
        self.added.append((custom_type, text, display))


class AgentStarted(ExtensionEvent):
    name = "agent_start"


class AgentEnded(ExtensionEvent):
    name = "agent_end"

    def __init__(self, messages: Sequence[Message], outcome: Literal["success", "error", "aborted"]) -> None:
        self.messages = messages
        self.outcome = outcome


class RunFailed(ExtensionEvent):
    name = "run_error"

    def __init__(self, category: str, message: str) -> None:
        self.category = category
        self.message = message


class AgentSettled(ExtensionEvent):
    name = "agent_settled"

    def __init__(self, outcome: Literal["success", "error", "aborted"]) -> None:
        self.outcome = outcome


class TurnStarted(ExtensionEvent):
    name = "turn_start"

    def __init__(self, turn_index: int) -> None:
        self.turn_index = turn_index


class TurnEnded(ExtensionEvent):
    """``stop_after`` ends the run here, before queues are looked at."""

    name, kind = "turn_end", "transform"

    def __init__(self, turn_index: int, message: AssistantMessage, results: Sequence[ToolResultMessage]) -> None:
        self.turn_index = turn_index
        self.message = message
        self.results = results
        self.stop_after = False


# --- the request -----------------------------------------------------------------------------------------------------------------------


class ContextBuilding(ExtensionEvent):
    """``messages`` is a list of the handler's own; what it leaves there is sent. Roles must stay legal."""

    name, kind = "context", "transform"

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages


class BeforeProviderRequest(ExtensionEvent):
    """``replace`` swaps the whole draft, or nothing if it is not valid: the model stays, tools are a subset of those offered."""

    name, kind = "before_provider_request", "transform"

    def __init__(self, model: Model, request: ModelRequest) -> None:
        self.model = model
        self.request = request

    def replace(self, request: ModelRequest) -> None:
        self.request = request


class BeforeProviderHeaders(ExtensionEvent):
    """Extra headers of the call. Authentication is neither shown nor taken."""

    name, kind = "before_provider_headers", "transform"

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers


class BeforeProviderPayload(ExtensionEvent):
    """The body as it goes to the service, without authentication."""

    name, kind = "before_provider_payload", "transform"

    def __init__(self, wire_format: str, payload: dict[str, Any]) -> None:
        self.wire_format = wire_format
        self.payload = payload


class ProviderResponded(ExtensionEvent):
    name = "provider_response"

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers


class ProviderFailed(ExtensionEvent):
    """There was no response at all."""

    name = "provider_request_failed"

    def __init__(self, message: str) -> None:
        self.message = message


# --- messages and tools ----------------------------------------------------------------------------------------------------------------


class MessageStarted(ExtensionEvent):
    name = "message_start"

    def __init__(self, role: str) -> None:
        self.role = role


class MessageUpdated(ExtensionEvent):
    """Pieces of an answer, gathered: a slow handler gets fewer and longer ones."""

    name, deadline_s = "message_update", 0.1

    def __init__(self, delta: str) -> None:
        self.delta = delta


class MessageEnding(ExtensionEvent):
    """A finished message, before it is stored. ``replace`` must keep the role."""

    name, kind = "message_end", "transform"

    def __init__(self, message: Message) -> None:
        self.message = message

    def replace(self, message: Message) -> None:
        self.message = message


class ToolCalled(GateEvent):
    """A call that is about to run. ``arguments`` may be changed and are then validated again. Raising blocks the call.

    ``owner`` says whether an owner of the host asked for this run. The deadline leaves a person time to answer a question. ``freeze``
    makes what stands now what runs: ``arguments`` is a copy from then on, and setting it raises.
    """

    name, deadline_s = "tool_call", 900.0

    def __init__(self, call: ToolCall, arguments: dict[str, Any], *, owner: bool) -> None:
        super().__init__()
        self.call = call
        self._arguments = arguments
        self.owner = owner
        self._frozen = False

    @property
    def arguments(self) -> dict[str, Any]:
        return deepcopy(self._arguments) if self._frozen else self._arguments

    @arguments.setter
    def arguments(self, arguments: dict[str, Any]) -> None:
        if self._frozen:
            raise RuntimeError(f"the arguments of {self.call.name!r} were approved as they are and cannot be changed any more")
        self._arguments = arguments

    def freeze(self) -> None:
        """What was approved is what runs."""
        self._arguments = deepcopy(self._arguments)
        self._frozen = True

    def block(self, reason: str) -> None:
        """The call gets an error result with ``reason``, which the model reads; its siblings go on."""
        self.refusal = reason or "Tool execution was blocked"


class ToolExecutionStarted(ExtensionEvent):
    name = "tool_execution_start"

    def __init__(self, call: ToolCall) -> None:
        self.call = call


class ToolExecutionUpdated(ExtensionEvent):
    name, deadline_s = "tool_execution_update", 0.1

    def __init__(self, call: ToolCall, text: str) -> None:
        self.call = call
        self.text = text


class ToolExecutionEnded(ExtensionEvent):
    name = "tool_execution_end"

    def __init__(self, call: ToolCall, *, is_error: bool) -> None:
        self.call = call
        self.is_error = is_error


class ToolResulted(ExtensionEvent):
    """Change ``content``, ``details`` and ``is_error``; whole fields, nothing is merged."""

    name, kind = "tool_result", "transform"

    def __init__(self, call: ToolCall, arguments: Mapping[str, Any], content: list[UserBlock], details: Any, *, is_error: bool) -> None:
        self.call = call
        self.arguments = arguments
        self.content = content
        self.details = details
        self.is_error = is_error


class ProcessSpawning(GateEvent):
    """A process is about to start in this session. Change ``spawn`` in place, or ``cancel``; raising fails the spawn."""

    name = "process_spawn"

    def __init__(self, spawn: ProcessSpawnEvent) -> None:
        super().__init__()
        self.spawn = spawn


# --- model and compaction --------------------------------------------------------------------------------------------------------------


class BeforeModelSelection(GateEvent):
    name = "before_model_select"

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model


class ModelSelected(ExtensionEvent):
    name = "model_select"

    def __init__(self, model: Model, thinking: ThinkingLevel, source: Literal["set", "restore", "fallback"]) -> None:
        self.model = model
        self.thinking = thinking
        self.source = source


class BeforeCompaction(GateEvent):
    """``use`` replaces the built-in algorithm's summary; ``entries`` is the branch."""

    name, deadline_s = "session_before_compact", 60.0

    def __init__(
        self,
        reason: Literal["manual", "threshold", "overflow"],
        entries: Sequence[SessionEntry],
        *,
        first_kept_entry_id: str,
        history: Sequence[Message],
        turn_prefix: Sequence[Message],
        previous_summary: str | None,
        tokens_before: int,
        instructions: str,
    ) -> None:
        super().__init__()
        self.reason = reason
        self.entries = entries
        self.first_kept_entry_id = first_kept_entry_id
        self.history = history
        self.turn_prefix = turn_prefix
        self.previous_summary = previous_summary
        self.tokens_before = tokens_before
        self.instructions = instructions
        self.summary: str | None = None
        self.details: Any = None

    def use(self, summary: str, *, first_kept_entry_id: str | None = None, details: Any = None) -> None:
        self.summary = summary
        self.first_kept_entry_id = first_kept_entry_id or self.first_kept_entry_id
        self.details = details


class CompactionDone(ExtensionEvent):
    name = "session_compact"

    def __init__(self, entry: CompactionEntry, *, from_extension: bool) -> None:
        self.entry = entry
        self.from_extension = from_extension


class CompactionFailed(ExtensionEvent):
    name = "session_compact_failed"

    def __init__(self, reason: str, error: str) -> None:
        self.reason = reason
        self.error = error


EXTENSION_EVENTS: tuple[type[ExtensionEvent], ...] = (
    SessionStarted,
    SessionShutdown,
    ResourcesDiscovered,
    BeforeSessionSwitch,
    SessionSwitched,
    BeforeSessionFork,
    SessionForked,
    BeforeSessionDelete,
    BeforeTree,
    TreeMoved,
    InputReceived,
    BeforeAgentStart,
    AgentStarted,
    AgentEnded,
    RunFailed,
    AgentSettled,
    TurnStarted,
    TurnEnded,
    ContextBuilding,
    BeforeProviderRequest,
    BeforeProviderHeaders,
    BeforeProviderPayload,
    ProviderResponded,
    ProviderFailed,
    MessageStarted,
    MessageUpdated,
    MessageEnding,
    ToolCalled,
    ToolExecutionStarted,
    ToolExecutionUpdated,
    ToolExecutionEnded,
    ToolResulted,
    ProcessSpawning,
    BeforeModelSelection,
    ModelSelected,
    BeforeCompaction,
    CompactionDone,
    CompactionFailed,
)
"""All of them, in the order of this page."""
