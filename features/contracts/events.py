"""What a session tells its host while it works. Names and fields are pi's JSON event names.

Listeners are called on the loop, in order, and must be quick. A finalised message is announced after it is on the disk.
"""

from typing import Any, Literal

import msgspec

from features.contracts.messages import AssistantMessage, Message, ToolResultMessage, UserBlock
from features.contracts.stream import BlockEvent

__all__ = [
    "AgentEnd",
    "AgentSettled",
    "AgentStart",
    "CompactionEnd",
    "CompactionReason",
    "CompactionResult",
    "CompactionStart",
    "ExtensionError",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ModelFallback",
    "QueueUpdate",
    "RetryEnd",
    "RetryStart",
    "SessionEvent",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "TurnEnd",
    "TurnStart",
]


CompactionReason = Literal["manual", "threshold", "overflow"]


class _Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class AgentStart(_Event, frozen=True, kw_only=True, tag="agent_start"):
    pass


class AgentEnd(_Event, frozen=True, kw_only=True, tag="agent_end"):
    """``messages`` are all that this run added."""

    messages: list[Message]


class AgentSettled(_Event, frozen=True, kw_only=True, tag="agent_settled"):
    """The last event of a run: nothing of it goes on. ``outcome`` is ``success``, ``error`` or ``aborted``."""

    outcome: Literal["success", "error", "aborted"]


class TurnStart(_Event, frozen=True, kw_only=True, tag="turn_start"):
    turn_index: int


class TurnEnd(_Event, frozen=True, kw_only=True, tag="turn_end"):
    turn_index: int
    message: AssistantMessage
    tool_results: list[ToolResultMessage]


class MessageStart(_Event, frozen=True, kw_only=True, tag="message_start"):
    """``message`` is None for an assistant message, whose parts follow as updates."""

    role: str
    message: Message | None = None


class MessageUpdate(_Event, frozen=True, kw_only=True, tag="message_update"):
    """A piece of the assistant message, redacted."""

    assistant_message_event: BlockEvent


class MessageEnd(_Event, frozen=True, kw_only=True, tag="message_end"):
    """``entry_id`` is the entry that holds the message; empty for a failed assistant message that could not be stored.

    An assistant message whose ``stop_reason`` is ``error`` was an attempt that failed; a viewer drops what it showed of it.
    """

    message: Message
    entry_id: str


class ToolExecutionStart(_Event, frozen=True, kw_only=True, tag="tool_execution_start"):
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]


class ToolExecutionUpdate(_Event, frozen=True, kw_only=True, tag="tool_execution_update"):
    tool_call_id: str
    tool_name: str
    partial_result: str


class ToolExecutionEnd(_Event, frozen=True, kw_only=True, tag="tool_execution_end"):
    tool_call_id: str
    tool_name: str
    content: list[UserBlock]
    is_error: bool
    details: Any = None


class QueueUpdate(_Event, frozen=True, kw_only=True, tag="queue_update"):
    steering: list[str]
    follow_up: list[str]


class RetryStart(_Event, frozen=True, kw_only=True, tag="retry_start"):
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class RetryEnd(_Event, frozen=True, kw_only=True, tag="retry_end"):
    success: bool
    attempt: int
    final_error: str | None = None


class CompactionStart(_Event, frozen=True, kw_only=True, tag="compaction_start"):
    """The older part of the conversation is being summed up. Comes within a run or, when a person asked for it, between two."""

    reason: CompactionReason


class CompactionResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """``tokens_after`` is an estimate, without system prompt and tools. ``from_extension``: an extension wrote the summary."""

    summary: str
    first_kept_entry_id: str
    tokens_before: int
    tokens_after: int
    details: Any = None
    from_extension: bool = False


class CompactionEnd(_Event, frozen=True, kw_only=True, tag="compaction_end"):
    """``result`` is what has been stored by now; None where it failed (``error_message``) or was stopped (``aborted``).

    ``will_retry``: the call that was too long for the model is made again.
    """

    reason: CompactionReason
    result: CompactionResult | None = None
    aborted: bool = False
    will_retry: bool = False
    error_message: str | None = None


class ModelFallback(_Event, frozen=True, kw_only=True, tag="model_fallback"):
    """Another model answers, because the one before it does not. References are ``provider/id``; ``reason`` is the kind of failure."""

    from_model: str
    to_model: str
    reason: str


class ExtensionError(_Event, frozen=True, kw_only=True, tag="extension_error"):
    extension: str
    event: str
    error: str


SessionEvent = (
    AgentStart
    | AgentEnd
    | AgentSettled
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | QueueUpdate
    | RetryStart
    | RetryEnd
    | CompactionStart
    | CompactionEnd
    | ModelFallback
    | ExtensionError
)
