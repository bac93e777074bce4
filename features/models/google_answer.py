"""Reading an answer of Google's Gemini API."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from features.contracts.messages import StopReason, ToolCall, Usage
from features.contracts.stream import (
    BlockEvent,
    PartialMessage,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallEnded,
    ToolCallStarted,
)
from features.models.failures import UpstreamFailure, google_failure

__all__ = ["GoogleAnswer"]

_REFUSALS = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT")
_GLITCHES = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE")


class _FunctionCall(msgspec.Struct, rename="camel"):
    name: str = ""
    id: str | None = None
    args: dict[str, Any] | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(msgspec.Struct, rename="camel"):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    prompt_feedback: _Feedback | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)


class GoogleAnswer:
    """Implements ``AnswerReader``. A finish reason ends an answer; the service sends no event of its own for it.

    Args:
        ids: names the calls that come without an id.
    """

    def __init__(self, partial: PartialMessage, price: Callable[[Usage], Usage], ids: Callable[[], str]) -> None:
        self.ended = False
        self._partial = partial
        self._price = price
        self._ids = ids
        self._telling: tuple[Literal["text", "thinking"], int] | None = None
        self._calls = 0
        self._stop = ""
        self._words = ""
        self._blocked = ""

    def feed(self, data: bytes) -> Iterable[BlockEvent]:
        try:
            chunk = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise UpstreamFailure("server", f"the service sent a chunk that cannot be read: {error}") from error
        if chunk.error:
            raise google_failure(None, {"error": chunk.error})
        if chunk.usage_metadata is not None:
            self._count(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            self._blocked, self.ended = chunk.prompt_feedback.block_reason, True
        if not chunk.candidates:
            return ()
        candidate = chunk.candidates[0]
        events: list[BlockEvent] = []
        for part in (candidate.content and candidate.content.parts) or ():
            events += self._grow(part)
        if candidate.finish_reason:
            self._stop, self._words, self.ended = candidate.finish_reason, candidate.finish_message or "", True
        return events

    def settle(self) -> tuple[list[BlockEvent], StopReason]:
        if not self.ended:
            raise UpstreamFailure("network", "the stream ended before the answer did")
        if self._blocked:
            raise UpstreamFailure("refused", f"the service would not take the request: {self._blocked}")
        why = f"{self._stop} {self._words}".strip()
        if self._stop in _REFUSALS:
            raise UpstreamFailure("refused", f"the service's content filter stopped the answer: {why}")
        if self._stop in _GLITCHES:
            raise UpstreamFailure("server", f"the model's call of a tool could not be read by the service: {why}")
        closing = self._end_telling()
        if self._stop == "MAX_TOKENS":
            return closing, "length"
        if self._stop != "STOP":
            raise UpstreamFailure("unknown", f"the model stopped for a reason that this version does not know: {why}")
        return closing, "toolUse" if self._calls else "stop"

    def abandon(self) -> None:
        self._telling = None

    def _grow(self, part: _Part) -> list[BlockEvent]:
        if part.function_call is not None:
            return self._call(part.function_call, part.thought_signature)
        events: list[BlockEvent] = []
        if part.text:
            events = self._tell("thinking" if part.thought else "text", part.text)
        if part.thought_signature:
            events += self._sign(part.thought_signature)
        return events

    def _tell(self, kind: Literal["text", "thinking"], piece: str) -> list[BlockEvent]:
        events: list[BlockEvent] = []
        if self._telling is None or self._telling[0] != kind:
            events = self._end_telling()
            at = self._partial.open(kind)
            self._telling = (kind, at)
            events.append(TextStarted(content_index=at) if kind == "text" else ThinkingStarted(content_index=at))
        at = self._telling[1]
        self._partial.append(at, piece)
        events.append(TextDelta(content_index=at, delta=piece) if kind == "text" else ThinkingDelta(content_index=at, delta=piece))
        return events

    def _sign(self, signature: str) -> list[BlockEvent]:
        """A signature belongs to the text it came with, or, in an empty part, to the text before it."""
        events: list[BlockEvent] = []
        if self._telling is None:
            at = self._partial.open("text")
            events.append(TextStarted(content_index=at))
            self._telling = ("text", at)
        else:
            at = self._telling[1]
        self._partial.sign(at, signature)
        return [*events, *self._end_telling()]

    def _end_telling(self) -> list[BlockEvent]:
        if self._telling is None:
            return []
        kind, at = self._telling
        self._telling = None
        return [TextEnded(content_index=at) if kind == "text" else ThinkingEnded(content_index=at)]

    def _call(self, call: _FunctionCall, signature: str | None) -> list[BlockEvent]:
        events = self._end_telling()
        self._calls += 1
        whole = ToolCall(id=call.id or f"call_{self._ids()}", name=call.name, arguments=call.args or {}, thought_signature=signature)
        at = self._partial.add(whole)
        return [
            *events,
            ToolCallStarted(content_index=at, id=whole.id, name=whole.name),
            ToolCallEnded(content_index=at, tool_call=whole),
        ]

    def _count(self, usage: _Usage) -> None:
        """The figures of a chunk are those of the whole answer so far; cached tokens are part of the prompt's."""
        read = usage.cached_content_token_count or 0
        fresh = max(0, (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0) - read)
        output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        self._partial.usage = self._price(Usage(input=fresh, output=output, cache_read=read, total_tokens=fresh + output + read))
