"""Reading what a `claude` says."""

from collections.abc import Callable
from typing import Any

from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, SystemMessage

from features.contracts.messages import StopReason, Usage
from features.contracts.stream import BlockEvent, PartialMessage
from features.models.anthropic_answer import AnthropicAnswer
from features.models.failures import UpstreamFailure, kind_of
from features.models.wire import encode_json

__all__ = ["TOOL_PREFIX", "ClaudeTurn"]

TOOL_PREFIX = "mcp__pumice__"
_OLDEST = (2, 1, 248)
"""The first version that takes a prompt as it is, without reading the files that it names."""
_ERRORS = {
    "authentication_failed": "authentication_error",
    "billing_error": "billing_error",
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
    "server_error": "server_error",
    "invalid_request": "invalid_request_error",
}


class ClaudeTurn:
    """What it says from a prompt, or a round of results, to the next; it passes on the very events of the model."""

    def __init__(self, partial: PartialMessage, price: Callable[[Usage], Usage]) -> None:
        self.ended = False
        self.speaking = False
        self.stop: StopReason = "stop"
        self.answer = AnthropicAnswer(partial, price)
        self._partial = partial
        self._price = price
        self._settled = False
        self._error = ""

    def take(self, message: Message) -> list[BlockEvent]:
        if isinstance(message, StreamEvent):
            return [] if message.parent_tool_use_id is not None else self._grow(message.event)
        if isinstance(message, SystemMessage) and message.subtype == "init":
            _check_version(message.data.get("claude_code_version"))
        elif isinstance(message, AssistantMessage) and message.error:
            self._error = message.error
        elif isinstance(message, ResultMessage):
            self._finish(message)
        return []

    def _grow(self, event: dict[str, Any]) -> list[BlockEvent]:
        if event.get("type") == "message_start" and self._settled:
            self._next_message()
        block = event.get("content_block")
        if isinstance(block, dict) and block.get("type") == "tool_use":
            event = {**event, "content_block": {**block, "name": str(block.get("name", "")).removeprefix(TOOL_PREFIX)}}
        self.speaking = True
        events = list(self.answer.feed(encode_json(event)))
        if self.answer.ended and not self._settled:
            closing, self.stop = self.answer.settle()
            self._settled, self.speaking = True, False
            self.ended = self.stop != "stop"
            events += closing
        return events

    def _next_message(self) -> None:
        """It went on by itself, after a pause; its calls of the model are one answer, and cost what they cost together."""
        before = self._partial.usage

        def price(usage: Usage) -> Usage:
            total = Usage(
                input=before.input + usage.input,
                output=before.output + usage.output,
                cache_read=before.cache_read + usage.cache_read,
                cache_write=before.cache_write + usage.cache_write,
                total_tokens=before.total_tokens + usage.total_tokens,
            )
            return self._price(total)

        self.answer = AnthropicAnswer(self._partial, price)
        self._settled = False

    def _finish(self, result: ResultMessage) -> None:
        if result.is_error or self._error:
            words = result.result or "; ".join(result.errors or ()) or result.subtype
            name = _ERRORS.get(self._error, self._error)
            text = " ".join(part for part in (str(result.api_error_status or ""), name) if part)
            text = f"{text}: {words}" if text else words
            raise UpstreamFailure(kind_of(result.api_error_status, (name,), text), text)
        if not self._settled:
            raise UpstreamFailure("network", "claude ended its turn before the answer did")
        self.ended = True


def _check_version(version: Any) -> None:
    try:
        parts = tuple(int(part) for part in str(version).split(".")[:3])
    except ValueError:
        parts = ()
    if parts < _OLDEST:
        wanted = ".".join(str(part) for part in _OLDEST)
        raise UpstreamFailure("invalid", f"this claude is version {version or 'unknown'}; version {wanted} is needed. Update Claude Code")
