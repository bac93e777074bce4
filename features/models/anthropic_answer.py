"""Reading an answer of Anthropic's Messages API."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from features.contracts.messages import StopReason, ThinkingBlock, Usage
from features.contracts.stream import (
    BlockEvent,
    PartialMessage,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
)
from features.models.failures import UpstreamFailure, upstream_failure
from features.models.tool_calls import OpenCall

__all__ = ["AnthropicAnswer"]

_STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "pause_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "toolUse",
}


class _Block(msgspec.Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    data: str = ""
    text: str = ""
    thinking: str = ""
    input: dict[str, Any] | None = None


class _Details(msgspec.Struct):
    explanation: str | None = None
    category: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_details: _Details | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    usage: _Usage | None = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Event)


class _Open(msgspec.Struct):
    """A text or thinking block that is being told; ``content_index`` is its place in our message."""

    kind: str
    content_index: int
    signature: str = ""


class AnthropicAnswer:
    """Implements ``AnswerReader``."""

    def __init__(self, partial: PartialMessage, price: Callable[[Usage], Usage]) -> None:
        self.ended = False
        self._partial = partial
        self._price = price
        self._open: dict[int, _Open | OpenCall] = {}
        self._calls = 0
        self._stop: str | None = None
        self._refusal: _Details | None = None
        self._counts = _Usage()

    def feed(self, data: bytes) -> Iterable[BlockEvent]:
        try:
            event = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise UpstreamFailure("server", f"the service sent an event that cannot be read: {error}") from error
        match event.type:
            case "content_block_delta" if event.delta is not None:
                return self._grow(event.index, event.delta)
            case "content_block_start" if event.content_block is not None:
                return self._start(event.index, event.content_block)
            case "content_block_stop":
                return self._end(event.index)
            case "message_start" if event.message is not None:
                self._count(event.message.usage)
            case "message_delta":
                if event.delta is not None:
                    self._stop = event.delta.stop_reason or self._stop
                    self._refusal = event.delta.stop_details or self._refusal
                self._count(event.usage)
            case "message_stop":
                self.ended = True
            case "error":
                raise upstream_failure(None, {"error": event.error})
        return ()

    def settle(self) -> tuple[list[BlockEvent], StopReason]:
        if not self.ended:
            raise UpstreamFailure("network", "the stream ended before the answer did")
        closing = [event for index in list(self._open) for event in self._end(index)]
        if self._stop == "refusal":
            why = (self._refusal and (self._refusal.explanation or self._refusal.category)) or "no reason given"
            raise UpstreamFailure("refused", f"the model refused to answer: {why}")
        if self._stop == "model_context_window_exceeded":
            raise UpstreamFailure("overflow", "model_context_window_exceeded: the conversation filled the model's window")
        stop = _STOPS.get(self._stop or "")
        if stop is None:
            raise UpstreamFailure("unknown", f"the model stopped for a reason that this version does not know: {self._stop!r}")
        if stop == "toolUse" and not self._calls:
            stop = "stop"
        return closing, stop

    def abandon(self) -> None:
        for block in self._open.values():
            if isinstance(block, OpenCall):
                block.abandon(self._partial)
        self._open.clear()

    def _start(self, index: int, block: _Block) -> list[BlockEvent]:
        if block.type == "tool_use":
            self._calls += 1
            call = OpenCall.begin(self._partial, block.id, block.name)
            self._open[index] = call
            if block.input:  # a gateway that does not stream arguments
                call.pieces.append(msgspec.json.encode(block.input).decode())
            return [call.started()]
        if block.type == "redacted_thinking":
            self._partial.add(ThinkingBlock(thinking="", thinking_signature=block.data, redacted=True))
            return []
        if block.type == "text":
            at = self._partial.open("text")
            self._open[index] = _Open("text", at)
            return [TextStarted(content_index=at), *self._grow(index, _Delta(text=block.text))]
        if block.type == "thinking":
            at = self._partial.open("thinking")
            self._open[index] = _Open("thinking", at)
            return [ThinkingStarted(content_index=at), *self._grow(index, _Delta(thinking=block.thinking))]
        return []  # a kind of block that was not asked for

    def _grow(self, index: int, delta: _Delta) -> list[BlockEvent]:
        block = self._open.get(index)
        if block is None:
            return []
        if isinstance(block, OpenCall):
            if not delta.partial_json:
                return []
            block.pieces.append(delta.partial_json)
            return [ToolCallDelta(content_index=block.content_index, delta=delta.partial_json)]
        if delta.signature:
            block.signature += delta.signature
        piece = delta.text if block.kind == "text" else delta.thinking
        if not piece:
            return []
        self._partial.append(block.content_index, piece)
        if block.kind == "text":
            return [TextDelta(content_index=block.content_index, delta=piece)]
        return [ThinkingDelta(content_index=block.content_index, delta=piece)]

    def _end(self, index: int) -> list[BlockEvent]:
        block = self._open.pop(index, None)
        if block is None:
            return []
        if isinstance(block, OpenCall):
            return [block.end(self._partial)]
        if block.signature:
            self._partial.sign(block.content_index, block.signature)
        if block.kind == "text":
            return [TextEnded(content_index=block.content_index)]
        return [ThinkingEnded(content_index=block.content_index)]

    def _count(self, usage: _Usage | None) -> None:
        """Later figures replace earlier ones, where there are any."""
        if usage is None:
            return
        counts = self._counts
        for name in _Usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(counts, name, value)
        fresh, output = counts.input_tokens or 0, counts.output_tokens or 0
        read, write = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
        self._partial.usage = self._price(
            Usage(input=fresh, output=output, cache_read=read, cache_write=write, total_tokens=fresh + output + read + write)
        )
