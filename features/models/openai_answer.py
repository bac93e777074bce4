"""Reading an answer of a Chat Completions API."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from features.contracts.messages import StopReason, Usage
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

__all__ = ["OpenAIAnswer"]

_STOPS: dict[str | None, StopReason] = {
    None: "stop",
    "stop": "stop",
    "end": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)


class OpenAIAnswer:
    """Implements ``AnswerReader``. A finish reason or ``[DONE]`` ends an answer; some servers send only one of them."""

    def __init__(self, partial: PartialMessage, price: Callable[[Usage], Usage], *, context_window: int) -> None:
        self.ended = False
        self._partial = partial
        self._price = price
        self._window = context_window
        self._telling: tuple[Literal["text", "thinking"], int] | None = None
        self._calls: dict[int, OpenCall] = {}
        self._finished = False
        self._stop: str | None = None
        self._refusal: list[str] = []

    def feed(self, data: bytes) -> Iterable[BlockEvent]:
        if data.startswith(b"[DONE]"):
            self.ended = True
            return ()
        try:
            chunk = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise UpstreamFailure("server", f"the service sent a chunk that cannot be read: {error}") from error
        if chunk.error:
            raise upstream_failure(None, {"error": chunk.error})
        if chunk.usage is not None:
            self._count(chunk.usage)
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finished, self._stop = True, choice.finish_reason
        return self._grow(choice.delta) if choice.delta is not None else ()

    def settle(self) -> tuple[list[BlockEvent], StopReason]:
        if not (self.ended or self._finished):
            raise UpstreamFailure("network", "the stream ended before the answer did")
        closing = self._end_telling()
        if self._refusal:
            raise UpstreamFailure("refused", f"the model refused to answer: {''.join(self._refusal)}")
        if self._stop == "content_filter":
            raise UpstreamFailure("refused", "the service's content filter stopped the answer")
        if self._stop not in _STOPS:
            message = f"the model stopped for a reason that this version does not know: {self._stop!r}"
            raise upstream_failure(None, {"error": {"message": message}})
        stop = _STOPS[self._stop]
        usage = self._partial.usage
        if stop == "length" and usage.output == 0 and usage.input + usage.cache_read >= 0.99 * self._window:
            raise UpstreamFailure("overflow", "the conversation fills the model's window; it answered nothing")
        closing += [call.end(self._partial) for call in self._calls.values()]
        has_calls = bool(self._calls)
        self._calls = {}
        if stop != "length":  # many servers say stop although they call a tool
            stop = "toolUse" if has_calls else "stop"
        return closing, stop

    def abandon(self) -> None:
        for call in self._calls.values():
            call.abandon(self._partial)
        self._calls = {}

    def _grow(self, delta: _Delta) -> list[BlockEvent]:
        events: list[BlockEvent] = []
        thinking = delta.reasoning_content or delta.reasoning
        if thinking:
            events += self._tell("thinking", thinking)
        if delta.content:
            events += self._tell("text", delta.content)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        for call in delta.tool_calls or ():
            events += self._grow_call(call)
        return events

    def _tell(self, kind: Literal["text", "thinking"], piece: str) -> list[BlockEvent]:
        events: list[BlockEvent] = []
        if self._telling is None or self._telling[0] != kind:
            events = self._end_telling()
            self._telling = (kind, self._partial.open(kind))
            at = self._telling[1]
            events.append(TextStarted(content_index=at) if kind == "text" else ThinkingStarted(content_index=at))
        at = self._telling[1]
        self._partial.append(at, piece)
        events.append(TextDelta(content_index=at, delta=piece) if kind == "text" else ThinkingDelta(content_index=at, delta=piece))
        return events

    def _end_telling(self) -> list[BlockEvent]:
        if self._telling is None:
            return []
        kind, at = self._telling
        self._telling = None
        return [TextEnded(content_index=at) if kind == "text" else ThinkingEnded(content_index=at)]

    def _grow_call(self, piece: _Call) -> list[BlockEvent]:
        function = piece.function or _Function()
        index = piece.index if piece.index is not None else self._index_of(piece)
        call = self._calls.get(index)
        events: list[BlockEvent] = []
        if call is None:
            events = self._end_telling()
            call = OpenCall.begin(self._partial, piece.id or f"call_{index}", function.name or "")
            self._calls[index] = call
            events.append(call.started())
        arguments = function.arguments
        if isinstance(arguments, dict):  # a server that sends them whole
            arguments = msgspec.json.encode(arguments).decode()
        if arguments:
            call.pieces.append(arguments)
            events.append(ToolCallDelta(content_index=call.content_index, delta=arguments))
        return events

    def _index_of(self, piece: _Call) -> int:
        """For servers that leave the index out: a new id is a new call, no id belongs to the last one."""
        for index, call in self._calls.items():
            if piece.id and call.id == piece.id:
                return index
        return len(self._calls) if piece.id or not self._calls else max(self._calls)

    def _count(self, usage: _Usage) -> None:
        details = usage.prompt_tokens_details or _PromptDetails()
        read, write = details.cached_tokens or 0, details.cache_write_tokens or 0
        fresh, output = max(0, (usage.prompt_tokens or 0) - read - write), usage.completion_tokens or 0
        self._partial.usage = self._price(
            Usage(input=fresh, output=output, cache_read=read, cache_write=write, total_tokens=fresh + output + read + write)
        )
