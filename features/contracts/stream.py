"""What a provider says while a model answers.

Order: ``StreamStarted``; for each block, in order, its ``*Started``, ``*Delta`` and ``*Ended``; then exactly one ``StreamDone`` or
``StreamFailed``. Events carry only what is new, so a long answer costs linear time; whoever needs the answer so far asks the
``PartialMessage`` that ``StreamStarted`` hands out.
"""

from typing import Literal

import msgspec

from features.contracts.messages import (
    AssistantBlock,
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
)

__all__ = [
    "FailureKind",
    "PartialMessage",
    "StreamDone",
    "StreamEvent",
    "StreamFailed",
    "StreamStarted",
    "TextDelta",
    "TextEnded",
    "TextStarted",
    "ThinkingDelta",
    "ThinkingEnded",
    "ThinkingStarted",
    "ToolCallDelta",
    "ToolCallEnded",
    "ToolCallStarted",
]

FailureKind = Literal[
    "auth",
    "billing",
    "rate_limit",
    "overloaded",
    "server",
    "network",
    "overflow",
    "refused",
    "invalid",
    "unknown",
    "turn_limit",
    "budget",
    "storage",
]
"""Who is at fault. ``rate_limit``, ``overloaded``, ``server`` and ``network`` are worth a retry; the others are not.

``turn_limit`` (a run needed more turns than it may take), ``budget`` (the chat has spent what it may) and ``storage`` (an entry could not
be kept) are never a provider's.
"""


class _Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class TextStarted(_Event, frozen=True, kw_only=True, tag="text_start"):
    content_index: int


class TextDelta(_Event, frozen=True, kw_only=True, tag="text_delta"):
    content_index: int
    delta: str


class TextEnded(_Event, frozen=True, kw_only=True, tag="text_end"):
    content_index: int


class ThinkingStarted(_Event, frozen=True, kw_only=True, tag="thinking_start"):
    content_index: int


class ThinkingDelta(_Event, frozen=True, kw_only=True, tag="thinking_delta"):
    content_index: int
    delta: str


class ThinkingEnded(_Event, frozen=True, kw_only=True, tag="thinking_end"):
    content_index: int


class ToolCallStarted(_Event, frozen=True, kw_only=True, tag="toolcall_start"):
    content_index: int
    id: str
    name: str


class ToolCallDelta(_Event, frozen=True, kw_only=True, tag="toolcall_delta"):
    """A raw piece of the arguments' JSON."""

    content_index: int
    delta: str


class ToolCallEnded(_Event, frozen=True, kw_only=True, tag="toolcall_end"):
    content_index: int
    tool_call: ToolCall


class PartialMessage:
    """An assistant message while it grows. Pieces are appended in constant time and joined once, on ``finish``.

    The provider that streams is its only writer.
    """

    def __init__(self, *, api: str, provider: str, model: str, timestamp: int) -> None:
        self.api = api
        self.provider = provider
        self.model = model
        self.timestamp = timestamp
        self.usage = Usage()
        self._blocks: list[tuple[Literal["text", "thinking"], list[str], str | None] | AssistantBlock] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def open(self, kind: Literal["text", "thinking"]) -> int:
        """Begin a block; returns its content index."""
        self._blocks.append((kind, [], None))
        return len(self._blocks) - 1

    def append(self, index: int, piece: str) -> None:
        block = self._blocks[index]
        assert isinstance(block, tuple)
        block[1].append(piece)

    def sign(self, index: int, signature: str) -> None:
        """Attach the provider's signature to a text or thinking block."""
        block = self._blocks[index]
        assert isinstance(block, tuple)
        self._blocks[index] = (block[0], block[1], signature)

    def add(self, block: AssistantBlock) -> int:
        """Put a complete block (a tool call, redacted thinking); returns its content index."""
        self._blocks.append(block)
        return len(self._blocks) - 1

    def replace(self, index: int, block: AssistantBlock) -> None:
        """Put the complete form of a block where an incomplete one stood."""
        self._blocks[index] = block

    def finish(self, stop_reason: StopReason, *, error_message: str | None = None) -> AssistantMessage:
        """The message as far as it came. Blocks without any text or signature are left out."""
        content: list[AssistantBlock] = []
        for block in self._blocks:
            if not isinstance(block, tuple):
                content.append(block)
                continue
            kind, pieces, signature = block
            text = "".join(pieces)
            if not text and signature is None:
                continue
            if kind == "text":
                content.append(TextBlock(text=text, text_signature=signature))
            else:
                content.append(ThinkingBlock(thinking=text, thinking_signature=signature))
        return AssistantMessage(
            content=content,
            api=self.api,
            provider=self.provider,
            model=self.model,
            usage=self.usage,
            stop_reason=stop_reason,
            timestamp=self.timestamp,
            error_message=error_message,
        )


class StreamStarted(_Event, frozen=True, kw_only=True, tag="start"):
    partial: PartialMessage


class StreamDone(_Event, frozen=True, kw_only=True, tag="done"):
    """The answer is complete; ``message.stop_reason`` is ``stop``, ``length`` or ``toolUse``."""

    message: AssistantMessage


class StreamFailed(_Event, frozen=True, kw_only=True, tag="error"):
    """The call failed; ``message`` holds what had arrived and the full error text.

    ``retry_after_s`` is what the service asked for, uncapped; None when it did not say.
    """

    message: AssistantMessage
    kind: FailureKind
    retry_after_s: float | None = None


BlockEvent = (
    TextStarted | TextDelta | TextEnded | ThinkingStarted | ThinkingDelta | ThinkingEnded | ToolCallStarted | ToolCallDelta | ToolCallEnded
)
StreamEvent = StreamStarted | BlockEvent | StreamDone | StreamFailed
