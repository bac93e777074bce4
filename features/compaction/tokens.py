"""How many tokens a message may cost, where no provider has counted it."""

import json
from collections.abc import Iterable, Sequence

from features.contracts.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    UserBlock,
)
from features.contracts.models import ToolSpec
from features.contracts.sessions import BranchSummaryEntry, CompactionEntry, CustomMessageEntry, MessageEntry, SessionEntry

__all__ = ["context_tokens", "estimate", "is_hidden_overflow", "message_of", "request_overhead", "sent_estimate", "usage_tokens"]

_CHARS_PER_TOKEN = 4
_IMAGE_CHARS = 4800


def estimate(message: Message) -> int:
    """A fourth of the characters, in UTF-16 units as pi counts them; an image counts as 4,800 of them."""
    match message:
        case AssistantMessage():
            chars = sum(_assistant_chars(block) for block in message.content)
        case BashExecutionMessage():
            chars = _units(message.command) + _units(message.output)
        case CompactionSummaryMessage() | BranchSummaryMessage():
            chars = _units(message.summary)
        case _:
            chars = _units(message.content) if isinstance(message.content, str) else sum(map(_block_chars, message.content))
    return -(-chars // _CHARS_PER_TOKEN)


def sent_estimate(message: Message) -> int:
    """``estimate`` of what a model reads of it: nothing of a failed answer or of a command that a person kept to themselves."""
    if isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted"):
        return 0
    if isinstance(message, BashExecutionMessage) and message.exclude_from_context:
        return 0
    return estimate(message)


def request_overhead(system_prompt: str, tools: Sequence[ToolSpec]) -> int:
    """What goes along with every request beside its messages."""
    chars = _units(system_prompt) + sum(_units(tool.name) + _units(tool.description) + len(json.dumps(tool.parameters)) for tool in tools)
    return -(-chars // _CHARS_PER_TOKEN)


def usage_tokens(usage: Usage) -> int:
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def message_of(entry: SessionEntry) -> Message | None:
    """What an entry adds to the model's context; None for those that add nothing, and for compactions, which replace what was before."""
    match entry:
        case MessageEntry():
            return entry.message
        case CustomMessageEntry():
            return CustomMessage(
                custom_type=entry.custom_type, content=entry.content, display=entry.display, details=entry.details, timestamp=0
            )
        case BranchSummaryEntry() if entry.summary:
            return BranchSummaryMessage(summary=entry.summary, from_id=entry.from_id, timestamp=0)
        case _:
            return None


def context_tokens(newest_first: Iterable[SessionEntry], messages: Sequence[Message], *, overhead: int = 0) -> int:
    """The size of the next request: what the last good answer's provider counted, and estimates of what came after it.

    Args:
        newest_first: the branch, from its end; read only as far as needed. An answer from before a compaction says nothing about the
            context after it, so nothing behind one is looked at.
        messages: the present context, which is estimated where no such answer is found.
        overhead: of system prompt and tools; counts with the estimate alone, because a provider's figure includes it.
    """
    after = 0
    for entry in newest_first:
        if isinstance(entry, CompactionEntry):
            break
        message = message_of(entry)
        if (counted := _counted(message)) > 0:
            return counted + after
        if message is not None:
            after += sent_estimate(message)
    return overhead + sum(map(sent_estimate, messages))


def _counted(message: Message | None) -> int:
    """What the provider of a good answer counted."""
    if not isinstance(message, AssistantMessage) or message.stop_reason in ("error", "aborted"):
        return 0
    return usage_tokens(message.usage)


def is_hidden_overflow(message: AssistantMessage, window: int) -> bool:
    """Whether an answer was cut off before its first word because the request filled the window."""
    read = message.usage.input + message.usage.cache_read
    return message.stop_reason == "length" and message.usage.output == 0 and read >= 0.99 * window


def _assistant_chars(block: TextBlock | ThinkingBlock | ToolCall) -> int:
    match block:
        case TextBlock():
            return _units(block.text)
        case ThinkingBlock():
            return _units(block.thinking)
        case ToolCall():
            return _units(block.name) + _units(json.dumps(block.arguments, ensure_ascii=False, separators=(",", ":")))


def _block_chars(block: UserBlock) -> int:
    return _IMAGE_CHARS if isinstance(block, ImageBlock) else _units(block.text)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
