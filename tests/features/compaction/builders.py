"""Entries and messages in few words."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from features.contracts.messages import (
    AssistantBlock,
    AssistantMessage,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from features.contracts.models import Model, ModelRequest
from features.contracts.sessions import CompactionEntry, MessageEntry, SessionEntry
from features.contracts.stream import FailureKind

__all__ = ["MODEL", "Asked", "assistant", "branch", "call", "compaction", "result", "usage", "user"]

MODEL = Model(provider="p", id="m", api="x", context_window=100_000, max_output=8_000)
_AT = "2026-01-05T09:00:00.000Z"


def user(text: str = "u") -> UserMessage:
    return UserMessage(content=text, timestamp=0)


def usage(*counts: int) -> Usage:
    read, written, cache_read, cache_write = (*counts, 0, 0, 0)[:4]
    return Usage(input=read, output=written, cache_read=cache_read, cache_write=cache_write, total_tokens=sum(counts))


def assistant(
    *blocks: str | AssistantBlock, stop: StopReason = "stop", used: Usage | None = None, error: str | None = None
) -> AssistantMessage:
    content: list[AssistantBlock] = [TextBlock(text=block) if isinstance(block, str) else block for block in blocks]
    return AssistantMessage(
        content=content, api="x", provider="p", model="m", usage=used or Usage(), stop_reason=stop, timestamp=0, error_message=error
    )


def call(id: str, name: str = "look", **arguments: object) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def result(id: str, text: str = "r") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=id, tool_name="look", content=[TextBlock(text=text)], is_error=False, timestamp=0)


def compaction(summary: str, first_kept: str, details: object = None, *, from_hook: bool = False) -> CompactionEntry:
    return CompactionEntry(
        id="", parent_id=None, timestamp=_AT, summary=summary, first_kept_entry_id=first_kept, tokens_before=1, details=details,
        from_hook=from_hook,
    )  # fmt: skip


def branch(*items: UserMessage | AssistantMessage | ToolResultMessage | SessionEntry) -> list[SessionEntry]:
    """Entries ``0``, ``1``, ... one after another."""
    entries: list[SessionEntry] = []
    for index, item in enumerate(items):
        place = {"id": str(index), "parent_id": str(index - 1) if index else None}
        if isinstance(item, UserMessage | AssistantMessage | ToolResultMessage):
            entries.append(MessageEntry(message=item, timestamp=_AT, **place))  # type: ignore[arg-type]
        else:
            entries.append(msgspec.structs.replace(item, **place))
    return entries


class Asked:
    """A model for summaries that answers with its script, in order, and keeps what it was asked."""

    def __init__(self, *script: AssistantMessage | FailureKind | Callable[[ModelRequest], AssistantMessage]) -> None:
        self.requests: list[ModelRequest] = []
        self._script = list(script)

    @property
    def texts(self) -> Sequence[str]:
        """The one message of each request."""
        return [str(request.messages[0].content) for request in self.requests if isinstance(request.messages[0], UserMessage)]

    def __call__(self, request: ModelRequest) -> Awaitable[tuple[AssistantMessage, FailureKind | None]]:
        return self._answer(request)

    async def _answer(self, request: ModelRequest) -> tuple[AssistantMessage, FailureKind | None]:
        self.requests.append(request)
        step = self._script.pop(0)
        if isinstance(step, str):
            return assistant(stop="error", error=f"{step}: full words of the service"), step
        return (step if isinstance(step, AssistantMessage) else step(request)), None
