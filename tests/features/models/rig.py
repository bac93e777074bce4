"""Calling a provider in a test, and what came of it."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from features.contracts.messages import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserBlock,
    UserMessage,
)
from features.contracts.models import Model, ModelRequest, ToolSpec
from features.contracts.stream import StreamDone, StreamEvent, StreamFailed, StreamStarted, TextDelta, ThinkingDelta
from features.contracts.testing import FakeClock, sequential_ids
from features.models import ModelOverride, ModelRegistry, ProviderConfig
from features.models.normalise import Legal, Target
from features.models.sse import StreamLimits
from features.models.transcript import Transcript
from tests.servers.anthropic import AnthropicServer
from tests.servers.google import GoogleServer
from tests.servers.openai import OpenAIServer
from tests.servers.responses import ResponsesServer
from tests.servers.script import ModelServer

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = ImageBlock(data=PNG, mime_type="image/png")
BASH = ToolSpec(name="bash", description="Run a command.", parameters={"type": "object", "properties": {"command": {"type": "string"}}})
SERVERS = (AnthropicServer, OpenAIServer, ResponsesServer, GoogleServer)
Kind = type[AnthropicServer] | type[OpenAIServer] | type[ResponsesServer] | type[GoogleServer]
_REFERENCES = {
    AnthropicServer: "anthropic/claude-sonnet-5-5",
    OpenAIServer: "openai/gpt-4.1",
    ResponsesServer: "openai/gpt-5.4",
    GoogleServer: "google/gemini-3.8-flash",
}
READ = ToolSpec(name="read", description="Read a file.", parameters={"type": "object", "properties": {"path": {"type": "string"}}})


@dataclass
class Outcome:
    events: list[StreamEvent]

    @property
    def last(self) -> StreamDone | StreamFailed:
        last = self.events[-1]
        assert isinstance(last, (StreamDone, StreamFailed))
        return last

    @property
    def done(self) -> AssistantMessage:
        assert isinstance(self.last, StreamDone), self.last
        return self.last.message

    @property
    def failed(self) -> StreamFailed:
        assert isinstance(self.last, StreamFailed), self.last
        return self.last

    @property
    def error(self) -> str:
        return self.failed.message.error_message or ""

    @property
    def text(self) -> str:
        return "".join(event.delta for event in self.events if isinstance(event, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(event.delta for event in self.events if isinstance(event, ThinkingDelta))

    @property
    def kinds(self) -> list[str]:
        return [event.__struct_config__.tag for event in self.events]  # type: ignore[misc]

    def is_well_formed(self) -> bool:
        """Begins with the start, ends with the only terminal event."""
        terminal = [event for event in self.events if isinstance(event, (StreamDone, StreamFailed))]
        return isinstance(self.events[0], StreamStarted) and len(terminal) == 1 and self.events[-1] is terminal[0]


class Rig:
    """Makes registries that talk to a loopback server."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self._registries: list[ModelRegistry] = []

    def registry(self, *configs: ProviderConfig, limits: StreamLimits | None = None, max_concurrency: int = 8) -> ModelRegistry:
        registry = ModelRegistry(configs, clock=self.clock, ids=sequential_ids(), max_concurrency=max_concurrency, limits=limits)
        self._registries.append(registry)
        return registry

    def anthropic(
        self, server: AnthropicServer, *models: ModelOverride, limits: StreamLimits | None = None, key: str | None = None
    ) -> ModelRegistry:
        config = ProviderConfig(name="anthropic", kind="anthropic", api_key=key or server.api_key, base_url=server.url, models=models)
        return self.registry(config, limits=limits)

    def openai(
        self, server: OpenAIServer | ResponsesServer, *models: ModelOverride, limits: StreamLimits | None = None, key: str | None = None
    ) -> ModelRegistry:
        config = ProviderConfig(name="openai", kind="openai", api_key=key or server.api_key, base_url=f"{server.url}/v1", models=models)
        return self.registry(config, limits=limits)

    def google(
        self, server: GoogleServer, *models: ModelOverride, limits: StreamLimits | None = None, key: str | None = None
    ) -> ModelRegistry:
        config = ProviderConfig(name="google", kind="google", api_key=key or server.api_key, base_url=server.url, models=models)
        return self.registry(config, limits=limits)

    def connect(self, server: ModelServer, limits: StreamLimits | None = None) -> tuple[ModelRegistry, str]:
        """A registry that knows the server, and a model of it."""
        reference = _REFERENCES[type(server)]
        if isinstance(server, AnthropicServer):
            return self.anthropic(server, limits=limits), reference
        if isinstance(server, GoogleServer):
            return self.google(server, limits=limits), reference
        assert isinstance(server, (OpenAIServer, ResponsesServer))
        return self.openai(server, limits=limits), reference

    async def close(self) -> None:
        for registry in self._registries:
            await registry.close()


async def call(registry: ModelRegistry, reference: str, messages: Sequence[Message] | str = "hi", **options: Any) -> Outcome:
    """One whole call."""
    model = registry.resolve(reference)
    if isinstance(messages, str):
        messages = [user(messages)]
    request = ModelRequest(system_prompt=options.pop("system_prompt", "Be brief."), messages=messages, **options)
    return await collect(registry, model, request)


async def collect(registry: ModelRegistry, model: Model, request: ModelRequest) -> Outcome:
    async with aclosing(registry.provider(model.provider).stream(model, request)) as stream:
        return Outcome([event async for event in stream])


def user(text: str | list[UserBlock], timestamp: int = 0) -> UserMessage:
    return UserMessage(content=text, timestamp=timestamp)


def assistant(
    *blocks: AssistantBlock | str,
    model: Model | None = None,
    stop_reason: Any = "stop",
    usage: Usage | None = None,
) -> AssistantMessage:
    content: list[AssistantBlock] = [TextBlock(text=block) if isinstance(block, str) else block for block in blocks]
    model = model or Model(provider="anthropic", id="claude-sonnet-4-5", api="anthropic-messages")
    return AssistantMessage(
        content=content,
        api=model.api,
        provider=model.provider,
        model=model.id,
        usage=usage or Usage(),
        stop_reason=stop_reason,
        timestamp=0,
    )


def tool_call(id: str, name: str = "bash", **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def result(id: str, text: str = "ok", *, is_error: bool = False, blocks: list[UserBlock] | None = None) -> ToolResultMessage:
    content: list[UserBlock] = blocks if blocks is not None else [TextBlock(text=text)]
    return ToolResultMessage(tool_call_id=id, tool_name="bash", content=content, is_error=is_error, timestamp=0)


def legalise(messages: Sequence[Message], target: Target) -> list[Legal]:
    """What a transcript hands to be written for the target."""
    told: list[Legal] = []

    def write(part: list[Legal], last: bool) -> bytes:
        told.extend(part)
        return b"-"

    Transcript(target, write).pieces(messages)
    return told
