"""Reading an answer of OpenAI's Responses API."""

from collections.abc import Callable, Iterable
from typing import Any

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
from features.models.responses_wire import TextSignature
from features.models.tool_calls import OpenCall

__all__ = ["ResponsesAnswer"]


class _Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    phase: str | None = None
    summary: list[Any] | None = None
    encrypted_content: str | None = None


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _CachedTokens | None = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    usage: _Usage | None = None
    incomplete_details: _Why | None = None
    error: Any = None


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int = 0
    delta: str | None = None
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None
    code: str | None = None
    message: str | None = None


_decoder = msgspec.json.Decoder(_Event)
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class _Open(msgspec.Struct):
    """An item that is being told. ``paragraph`` says that the next piece begins another part of it."""

    kind: str
    content_index: int
    paragraph: bool = False


class ResponsesAnswer:
    """Implements ``AnswerReader``."""

    def __init__(self, partial: PartialMessage, price: Callable[[Usage], Usage]) -> None:
        self.ended = False
        self._partial = partial
        self._price = price
        self._open: dict[int, _Open | OpenCall] = {}
        self._calls = 0
        self._end = _Response()
        self._refusal: list[str] = []

    def feed(self, data: bytes) -> Iterable[BlockEvent]:
        try:
            event = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise UpstreamFailure("server", f"the service sent an event that cannot be read: {error}") from error
        match event.type:
            case "response.output_text.delta":
                return self._grow(event.output_index, event.delta or "")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._grow(event.output_index, event.delta or "")
            case "response.function_call_arguments.delta":
                return self._grow_call(event.output_index, event.delta or "")
            case "response.refusal.delta":
                self._refusal.append(event.delta or "")
            case "response.reasoning_summary_part.done":
                self._next_part(event.output_index)
            case "response.output_item.added" if event.item is not None:
                return self._start(event.output_index, event.item)
            case "response.output_item.done" if event.item is not None:
                return self._finish_item(event.output_index, event.item)
            case "error":
                raise upstream_failure(None, {"error": event.error or {"code": event.code, "message": event.message}})
            case _ if event.type in _ENDS:
                self._finish(event.response or _Response())
        return ()

    def settle(self) -> tuple[list[BlockEvent], StopReason]:
        if not self.ended:
            raise UpstreamFailure("network", "the stream ended before the answer did")
        end = self._end
        if end.status == "failed" or end.error:
            raise upstream_failure(None, {"error": end.error or {"message": "the service gave up without saying why"}})
        if self._refusal:
            raise UpstreamFailure("refused", f"the model refused to answer: {''.join(self._refusal)}")
        closing = [event for index in list(self._open) for event in self._close(index)]
        reason = end.incomplete_details.reason if end.incomplete_details is not None else None
        if end.status == "completed":
            return closing, "toolUse" if self._calls else "stop"
        if reason == "content_filter":
            raise UpstreamFailure("refused", "the service's content filter stopped the answer")
        if end.status == "incomplete":
            return closing, "length"
        raise UpstreamFailure("unknown", f"the answer ended in a state that this version does not know: {end.status!r}")

    def abandon(self) -> None:
        for block in self._open.values():
            if isinstance(block, OpenCall):
                block.abandon(self._partial)
        self._open.clear()

    def _start(self, index: int, item: _Item) -> list[BlockEvent]:
        if item.type == "function_call":
            self._calls += 1
            call_id = item.call_id or f"call_{index}"
            call = OpenCall.begin(self._partial, f"{call_id}|{item.id}" if item.id else call_id, item.name or "")
            self._open[index] = call
            return [call.started()]
        if item.type == "message":
            at = self._partial.open("text")
            self._open[index] = _Open("text", at)
            return [TextStarted(content_index=at)]
        if item.type == "reasoning":
            at = self._partial.open("thinking")
            self._open[index] = _Open("thinking", at)
            return [ThinkingStarted(content_index=at)]
        return []  # a kind of item that was not asked for

    def _grow(self, index: int, piece: str) -> list[BlockEvent]:
        block = self._open.get(index)
        if not isinstance(block, _Open) or not piece:
            return []
        if block.paragraph:
            block.paragraph, piece = False, f"\n\n{piece}"
        self._partial.append(block.content_index, piece)
        if block.kind == "text":
            return [TextDelta(content_index=block.content_index, delta=piece)]
        return [ThinkingDelta(content_index=block.content_index, delta=piece)]

    def _grow_call(self, index: int, piece: str) -> list[BlockEvent]:
        call = self._open.get(index)
        if not isinstance(call, OpenCall) or not piece:
            return []
        call.pieces.append(piece)
        return [ToolCallDelta(content_index=call.content_index, delta=piece)]

    def _next_part(self, index: int) -> None:
        block = self._open.get(index)
        if isinstance(block, _Open):
            block.paragraph = True

    def _finish_item(self, index: int, item: _Item) -> list[BlockEvent]:
        """The whole item comes once more at its end; only what was not told is taken from it."""
        block = self._open.get(index)
        if isinstance(block, OpenCall):
            if not block.pieces and item.arguments:
                block.pieces.append(item.arguments)
        elif block is not None and block.kind == "text":
            signature = TextSignature(id=item.id or "", phase=item.phase or msgspec.UNSET)
            self._partial.sign(block.content_index, msgspec.json.encode(signature).decode())
        elif block is not None and item.encrypted_content:
            whole = {"type": "reasoning", "id": item.id, "summary": item.summary or [], "encrypted_content": item.encrypted_content}
            self._partial.sign(block.content_index, msgspec.json.encode(whole).decode())
        return self._close(index)

    def _close(self, index: int) -> list[BlockEvent]:
        block = self._open.pop(index, None)
        if block is None:
            return []
        if isinstance(block, OpenCall):
            return [block.end(self._partial)]
        if block.kind == "text":
            return [TextEnded(content_index=block.content_index)]
        return [ThinkingEnded(content_index=block.content_index)]

    def _finish(self, response: _Response) -> None:
        self.ended, self._end = True, response
        usage = response.usage
        if usage is None:
            return
        details = usage.input_tokens_details or _CachedTokens()
        read, write = details.cached_tokens or 0, details.cache_write_tokens or 0
        fresh, output = max(0, (usage.input_tokens or 0) - read - write), usage.output_tokens or 0
        self._partial.usage = self._price(
            Usage(input=fresh, output=output, cache_read=read, cache_write=write, total_tokens=fresh + output + read + write)
        )
