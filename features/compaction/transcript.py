"""A conversation as text, for a model that sums it up."""

import json
from collections.abc import Sequence

from features.contracts.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
)

__all__ = ["transcript", "transcript_pieces"]

_RESULT_CHARS = 2000


def transcript(messages: Sequence[Message]) -> str:
    """Parts joined by blank lines. Tool results are cut at 2,000 characters, with a note; what people and the model said never is."""
    return "\n\n".join(transcript_pieces(messages))


def transcript_pieces(messages: Sequence[Message]) -> list[str]:
    """What ``transcript`` joins; attempts of the model that failed are left out."""
    return [part for message in messages for part in _parts(message)]


def _parts(message: Message) -> list[str]:
    match message:
        case AssistantMessage(stop_reason="error"):
            return []
        case AssistantMessage():
            return _assistant_parts(message)
        case ToolResultMessage():
            text = _text(message.content)
            return [f"[Tool result]: {_shortened(text)}"] if text else []
        case BashExecutionMessage():
            return [] if message.exclude_from_context else [f"[User]: ran `{message.command}`\n{_shortened(message.output)}"]
        case CompactionSummaryMessage() | BranchSummaryMessage():
            return [f"[Summary]: {message.summary}"]
        case _:
            text = message.content if isinstance(message.content, str) else _text(message.content)
            return [f"[User]: {text}"] if text else []


def _assistant_parts(message: AssistantMessage) -> list[str]:
    thinking = "\n".join(block.thinking for block in message.content if isinstance(block, ThinkingBlock) and block.thinking)
    text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
    calls = "; ".join(_call(block) for block in message.content if isinstance(block, ToolCall))
    labelled = (("Assistant thinking", thinking), ("Assistant", text), ("Assistant tool calls", calls))
    return [f"[{label}]: {part}" for label, part in labelled if part]


def _call(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    return f"{call.name}({arguments})"


def _text(content: Sequence[UserBlock]) -> str:
    return "".join(block.text for block in content if isinstance(block, TextBlock))


def _shortened(text: str) -> str:
    if len(text) <= _RESULT_CHARS:
        return text
    return f"{text[:_RESULT_CHARS]}\n\n[... {len(text) - _RESULT_CHARS} more characters truncated]"
