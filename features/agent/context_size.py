"""How much of a model's window a conversation takes."""

from collections.abc import Sequence

from features.contracts.messages import (
    AssistantBlock,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
)

__all__ = ["context_tokens"]

_CHARS_PER_TOKEN = 4
_IMAGE_CHARS = 4800


def context_tokens(messages: Sequence[Message]) -> int:
    """Tokens of the context: the last figure a service gave, plus an estimate of what came after it."""
    chars = 0
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted") and message.usage.total_tokens:
            return message.usage.total_tokens + chars // _CHARS_PER_TOKEN
        chars += _chars(message)
    return -(-chars // _CHARS_PER_TOKEN)


def _chars(message: Message) -> int:
    if isinstance(message, CompactionSummaryMessage | BranchSummaryMessage):
        return len(message.summary)
    if isinstance(message, BashExecutionMessage):
        return 0 if message.exclude_from_context else len(message.command) + len(message.output)
    if isinstance(message.content, str):
        return len(message.content)
    return sum(_block_chars(block) for block in message.content)


def _block_chars(block: AssistantBlock | ImageBlock) -> int:
    if isinstance(block, TextBlock):
        return len(block.text)
    if isinstance(block, ThinkingBlock):
        return len(block.thinking)
    if isinstance(block, ImageBlock):
        return _IMAGE_CHARS
    return len(block.name) + len(str(block.arguments))
