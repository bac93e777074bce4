"""A provider without a network: a small, honest, deterministic assistant."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from features.contracts.clock import Clock, unix_ms
from features.contracts.messages import CustomMessage, Message, ToolCall, ToolResultMessage, UserMessage, message_text
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import (
    PartialMessage,
    StreamDone,
    StreamEvent,
    StreamStarted,
    TextDelta,
    TextEnded,
    TextStarted,
    ToolCallEnded,
    ToolCallStarted,
)
from features.models.offline_notes import conversation_notes
from features.models.offline_requests import HELP, Action, Say, Situation, understand
from features.models.texts import zone

__all__ = ["OFFLINE_MODEL", "OfflineProvider"]

OFFLINE_MODEL = Model(provider="offline", id="assistant", api="offline", name="Offline assistant", context_window=1_000_000)
_MAX_SHOWN = 3_000
_PIECES = 4


class OfflineProvider:
    """Implements ``Provider``. It calls the tools it is offered, as a model does, so that a newcomer sees the whole host work."""

    def __init__(self, name: str, clock: Clock, ids: Callable[[], str]) -> None:
        self.name = name
        self._clock = clock
        self._ids = ids

    async def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = PartialMessage(api=model.api, provider=self.name, model=model.id, timestamp=unix_ms(self._clock.now()))
        answer = self._answer(request)
        yield StreamStarted(partial=partial)
        if isinstance(answer, ToolCall):
            index = partial.add(answer)
            yield ToolCallStarted(content_index=index, id=answer.id, name=answer.name)
            yield ToolCallEnded(content_index=index, tool_call=answer)
            yield StreamDone(message=partial.finish("toolUse"))
            return
        index = partial.open("text")
        yield TextStarted(content_index=index)
        for piece in _pieces(answer):
            partial.append(index, piece)
            yield TextDelta(content_index=index, delta=piece)
            await asyncio.sleep(0)
        yield TextEnded(content_index=index)
        yield StreamDone(message=partial.finish("stop"))

    async def close(self) -> None:
        """Nothing is held."""

    def _answer(self, request: ModelRequest) -> str | ToolCall:
        prompt, earlier, since = _split(request.messages)
        if prompt is None:
            return HELP
        if (notes := conversation_notes(prompt, request)) is not None:
            return notes
        now = self._clock.now().astimezone(zone(request.time_zone))
        step = understand(prompt, Situation(now=now, said=earlier))
        if isinstance(step, Say):
            return step.text
        results = [message for message in since if isinstance(message, ToolResultMessage)]
        offered = {tool.name for tool in request.tools}
        if results:
            return _report(step, results[-1])
        if step.tool not in offered:
            return f"I understood you, but there is {step.missing}."
        return self._call(step)

    def _call(self, step: Action) -> ToolCall:
        return ToolCall(id=f"call_{self._ids()}", name=step.tool, arguments=step.arguments)


def _split(messages: Sequence[Message]) -> tuple[str | None, list[str], list[Message]]:
    """The prompt, what the person said before it, and what came after it."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, (UserMessage, CustomMessage)):
            earlier = [message_text(other) for other in messages[:index] if isinstance(other, UserMessage)]
            return message_text(message), earlier, list(messages[index + 1 :])
    return None, [], []


def _report(step: Action, result: ToolResultMessage) -> str:
    text = message_text(result).strip()
    if len(text) > _MAX_SHOWN:
        text = f"{text[:_MAX_SHOWN]}\n… ({len(text) - _MAX_SHOWN} characters more)"
    fence = "`" * max(3, _longest_run(text) + 1)
    shown = f"\n\n{fence}\n{text}\n{fence}" if text else ""
    if result.is_error:
        return f"That did not work.{shown}"
    if not step.show_result:
        return step.done
    return f"{step.done}{shown or ' (nothing)'}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // _PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]
