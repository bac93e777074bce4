"""Messages and content blocks, in the JSON form that pi's session files use (camelCase, times in Unix ms)."""

from typing import Any, Literal

import msgspec

__all__ = [
    "AssistantBlock",
    "AssistantMessage",
    "BashExecutionMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "Cost",
    "CustomMessage",
    "ImageBlock",
    "Message",
    "StopReason",
    "TextBlock",
    "ThinkingBlock",
    "ToolCall",
    "ToolResultMessage",
    "Usage",
    "UserBlock",
    "UserMessage",
    "message_text",
]

StopReason = Literal["stop", "length", "toolUse", "error", "aborted"]
"""Why an assistant message ended. ``length``: the output limit cut it, so its tool calls must not run."""


# No cycle runs through a message, and the collector would walk through tens of thousands of them.
class _Record(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    pass


class TextBlock(_Record, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str
    text_signature: str | None = None


class ThinkingBlock(_Record, frozen=True, kw_only=True, tag_field="type", tag="thinking"):
    """The model's own reasoning. A signed block is sent back byte for byte or not at all."""

    thinking: str
    thinking_signature: str | None = None
    redacted: bool = False


class ImageBlock(_Record, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image; ``data`` is base64 without a ``data:`` prefix."""

    data: str
    mime_type: str


class ToolCall(_Record, frozen=True, kw_only=True, tag_field="type", tag="toolCall"):
    """A request of the model to run a tool.

    ``invalid_arguments`` holds the raw text when it was no JSON object; such a call is answered with an error and never run.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    thought_signature: str | None = None
    invalid_arguments: str | None = None


UserBlock = TextBlock | ImageBlock
AssistantBlock = TextBlock | ThinkingBlock | ToolCall


class Cost(_Record, frozen=True, kw_only=True, omit_defaults=False):
    """US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(_Record, frozen=True, kw_only=True, omit_defaults=False):
    """Tokens of one model call; ``input`` excludes what the cache served."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost: Cost = Cost()


class UserMessage(_Record, frozen=True, kw_only=True, tag_field="role", tag="user"):
    content: str | list[UserBlock]
    timestamp: int


class AssistantMessage(_Record, frozen=True, kw_only=True, tag_field="role", tag="assistant"):
    content: list[AssistantBlock]
    api: str
    provider: str
    model: str
    usage: Usage
    stop_reason: StopReason
    timestamp: int
    error_message: str | None = None


class ToolResultMessage(_Record, frozen=True, kw_only=True, tag_field="role", tag="toolResult"):
    """The one result of a tool call. ``details`` is for people and programs; the model never sees it."""

    tool_call_id: str
    tool_name: str
    content: list[UserBlock]
    is_error: bool
    timestamp: int
    details: Any = None


class CustomMessage(_Record, frozen=True, kw_only=True, tag_field="role", tag="custom"):
    """A message that an extension or the host put into the context; the model reads it as the user's."""

    custom_type: str
    content: str | list[UserBlock]
    display: bool
    timestamp: int
    details: Any = None


class BashExecutionMessage(_Record, frozen=True, kw_only=True, tag_field="role", tag="bashExecution"):
    """A command that a person ran beside the agent; comes with sessions of other programs."""

    command: str
    output: str
    cancelled: bool
    truncated: bool
    timestamp: int
    exit_code: int | None = None
    full_output_path: str | None = None
    exclude_from_context: bool = False


class CompactionSummaryMessage(_Record, frozen=True, kw_only=True, tag_field="role", tag="compactionSummary"):
    """Stands in the context for everything before a compaction."""

    summary: str
    tokens_before: int
    timestamp: int


class BranchSummaryMessage(_Record, frozen=True, kw_only=True, tag_field="role", tag="branchSummary"):
    """What happened on a branch that the session came back from."""

    summary: str
    from_id: str
    timestamp: int


Message = (
    UserMessage
    | AssistantMessage
    | ToolResultMessage
    | CustomMessage
    | BashExecutionMessage
    | CompactionSummaryMessage
    | BranchSummaryMessage
)


def message_text(message: UserMessage | AssistantMessage | ToolResultMessage | CustomMessage | BashExecutionMessage) -> str:
    """The plain text of a message: its text blocks joined by line ends; thinking, calls and images left out."""
    if isinstance(message, BashExecutionMessage):
        return _execution_text(message)
    if isinstance(message.content, str):
        return message.content
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))


def _execution_text(message: BashExecutionMessage) -> str:
    lines = [f"Ran `{message.command}`", f"```\n{message.output}\n```" if message.output else "(no output)"]
    if message.cancelled:
        lines.append("\n(command cancelled)")
    elif message.exit_code:
        lines.append(f"\nCommand exited with code {message.exit_code}")
    if message.truncated and message.full_output_path:
        lines.append(f"\n[Output truncated. Full output: {message.full_output_path}]")
    return "\n".join(lines)
