"""Doubles for tests of whatever runs sessions: a provider that follows a script, models that lead to it, tools that do as told."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Literal

import msgspec

from features.contracts.errors import UserMustAct
from features.contracts.messages import AssistantBlock, Message, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage
from features.contracts.models import Model, ModelRequest, Provider, ThinkingLevel, ToolSpec
from features.contracts.stream import (
    FailureKind,
    PartialMessage,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamStarted,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from features.contracts.tools import ToolInvocation, ToolResult, text_result

__all__ = [
    "SCRIPTED_MODEL",
    "FunctionTool",
    "ScriptedModels",
    "ScriptedProvider",
    "SeenRequest",
    "Step",
    "answers",
    "breaks_off",
    "call",
    "fails",
    "hangs",
    "raises",
]

SCRIPTED_MODEL = Model(provider="scripted", id="one", api="scripted", reasoning=True)
_TIMESTAMP = 1_767_603_600_000

Step = Callable[[Model, ModelRequest], AsyncGenerator[StreamEvent, None]]


class SeenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider was asked, kept as it was at that moment."""

    model: Model
    system_prompt: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    thinking: ThinkingLevel
    session_id: str
    time_zone: str


class ScriptedProvider:
    """Answers one request per step. ``check`` fails when a step was not used or a request had none."""

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self._unexpected = 0
        self.requests: list[SeenRequest] = []
        self.open_streams = 0

    def add(self, *steps: Step) -> None:
        self._steps.extend(steps)

    async def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(
            SeenRequest(
                model=model,
                system_prompt=request.system_prompt,
                messages=tuple(request.messages),
                tools=tuple(tool.name for tool in request.tools),
                thinking=request.thinking,
                session_id=request.session_id,
                time_zone=request.time_zone,
            )
        )
        if not self._steps:
            self._unexpected += 1
            raise AssertionError(f"request {len(self.requests)} was not in the script")
        step = self._steps.pop(0)
        self.open_streams += 1
        try:
            async for event in step(model, request):
                yield event
        finally:
            self.open_streams -= 1

    async def close(self) -> None:
        return

    def check(self) -> None:
        assert not self._unexpected, f"{self._unexpected} requests were not in the script"
        assert not self._steps, f"{len(self._steps)} steps of the script were not used"


class ScriptedModels:
    """Any model of the ``scripted`` provider, as a registry would give it."""

    def __init__(self, provider: Provider, *models: Model) -> None:
        self._provider = provider
        self._models = {model.reference: model for model in (SCRIPTED_MODEL, *models)}

    def resolve(self, reference: str) -> Model:
        if reference not in self._models:
            raise UserMustAct(f"There is no model {reference!r}.")
        return self._models[reference]

    def provider(self, name: str) -> Provider:
        assert name == SCRIPTED_MODEL.provider
        return self._provider


class FunctionTool:
    """A tool that is a function of its call. Its schema takes one optional string, ``text``."""

    label = "Function"
    prompt_guidelines: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        run: Callable[[ToolInvocation], Awaitable[ToolResult]] | None = None,
        *,
        execution: Literal["parallel", "sequential"] = "parallel",
        required: Sequence[str] = (),
    ) -> None:
        self.spec = ToolSpec(
            name=name,
            description=f"Does {name}.",
            parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": list(required)},
        )
        self.prompt_snippet = f"Does {name}"
        self.execution = execution
        self.calls: list[ToolInvocation] = []
        self._run = run

    async def run(self, call: ToolInvocation) -> ToolResult:
        self.calls.append(call)
        if self._run is None:
            return text_result(f"{self.spec.name} done")
        return await self._run(call)


def call(id: str, name: str, *, invalid: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments, invalid_arguments=invalid)


def answers(*blocks: str | AssistantBlock, stop_reason: StopReason | None = None, usage: Usage | None = None, chunk: int = 4) -> Step:
    """A whole answer, text in pieces of ``chunk`` characters; other tasks get a turn between the pieces."""

    async def step(model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = _partial(model)
        yield StreamStarted(partial=partial)
        async for event in _blocks(partial, blocks, chunk):
            yield event
        partial.usage = Usage(input=10, output=5, total_tokens=15) if usage is None else usage
        called = any(isinstance(block, ToolCall) for block in blocks)
        yield StreamDone(message=partial.finish(stop_reason or ("toolUse" if called else "stop")))

    return step


def fails(kind: FailureKind, *blocks: str | AssistantBlock, error: str = "it failed", retry_after_s: float | None = None) -> Step:
    """A failure, after some blocks where given; without any it comes before the answer has started."""

    async def step(model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = _partial(model)
        if blocks:
            yield StreamStarted(partial=partial)
        async for event in _blocks(partial, blocks, 4):
            yield event
        yield StreamFailed(message=partial.finish("error", error_message=error), kind=kind, retry_after_s=retry_after_s)

    return step


def hangs(*blocks: str | AssistantBlock) -> Step:
    """Some blocks, then nothing more, until the stream is closed or its task cancelled."""

    async def step(model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = _partial(model)
        if blocks:
            yield StreamStarted(partial=partial)
        async for event in _blocks(partial, blocks, 4):
            yield event
        await asyncio.get_running_loop().create_future()

    return step


def breaks_off(*blocks: str | AssistantBlock) -> Step:
    """A stream that ends without a last word, against its contract. Text blocks stay open."""

    async def step(model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = _partial(model)
        yield StreamStarted(partial=partial)
        async for event in _blocks(partial, blocks, 4):
            if not isinstance(event, TextEnded | ThinkingEnded):
                yield event

    return step


def raises(error: Exception) -> Step:
    """A stream that raises, against its contract."""

    async def step(model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        yield StreamStarted(partial=_partial(model))
        raise error

    return step


def _partial(model: Model) -> PartialMessage:
    return PartialMessage(api=model.api, provider=model.provider, model=model.id, timestamp=_TIMESTAMP)


async def _blocks(partial: PartialMessage, blocks: Sequence[str | AssistantBlock], chunk: int) -> AsyncGenerator[StreamEvent, None]:
    for block in blocks:
        await asyncio.sleep(0)
        if isinstance(block, ToolCall):
            index = partial.add(block)
            yield ToolCallStarted(content_index=index, id=block.id, name=block.name)
            raw = block.invalid_arguments or msgspec.json.encode(block.arguments).decode()
            for piece in _pieces(raw, chunk):
                yield ToolCallDelta(content_index=index, delta=piece)
            yield ToolCallEnded(content_index=index, tool_call=block)
        elif isinstance(block, ThinkingBlock):
            index = partial.open("thinking")
            yield ThinkingStarted(content_index=index)
            for piece in _pieces(block.thinking, chunk):
                partial.append(index, piece)
                yield ThinkingDelta(content_index=index, delta=piece)
            if block.thinking_signature is not None:
                partial.sign(index, block.thinking_signature)
            yield ThinkingEnded(content_index=index)
        else:
            text = block.text if isinstance(block, TextBlock) else block
            index = partial.open("text")
            yield TextStarted(content_index=index)
            for piece in _pieces(text, chunk):
                await asyncio.sleep(0)
                partial.append(index, piece)
                yield TextDelta(content_index=index, delta=piece)
            yield TextEnded(content_index=index)


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
