"""A model, what is asked of it, and the provider that answers."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from features.contracts.messages import Message
from features.contracts.stream import StreamEvent

__all__ = ["THINKING_LEVELS", "Model", "ModelRequest", "Provider", "ProviderHooks", "ThinkingLevel", "ToolSpec"]

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh")


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What the host knows of a model. Sizes are tokens; prices are US dollars per million tokens."""

    provider: str
    id: str
    api: str
    name: str = ""
    context_window: int = 128_000
    max_output: int = 16_384
    input: tuple[Literal["text", "image"], ...] = ("text",)
    reasoning: bool = False
    input_price: float = 0.0
    output_price: float = 0.0
    cache_read_price: float = 0.0
    cache_write_price: float = 0.0

    @property
    def reference(self) -> str:
        """``provider/id``, as people write it."""
        return f"{self.provider}/{self.id}"


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it; ``parameters`` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ProviderHooks(Protocol):
    """What somebody else has to say about a call over HTTP. A provider without HTTP calls none of it.

    - ``headers`` and ``payload`` are called right before the request with what would be sent, and give what is sent. Authentication is
      neither in what they get nor taken from what they give.
    - ``responded`` is called before the answer is read; ``failed`` when there was no response at all.
    - None of them raises.
    """

    async def headers(self, headers: dict[str, str]) -> dict[str, str]: ...

    async def payload(self, wire_format: str, payload: dict[str, Any]) -> dict[str, Any]: ...

    async def responded(self, status: int, headers: Mapping[str, str]) -> None: ...

    async def failed(self, message: str) -> None: ...


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model.

    ``messages`` is the agent's own list, not a copy: a provider reads it before its first await and never changes it.
    ``time_zone`` is the IANA zone in which user messages are stamped with their time.
    """

    system_prompt: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    thinking: ThinkingLevel = "off"
    max_output: int | None = None
    session_id: str = ""
    time_zone: str = "UTC"
    hooks: ProviderHooks | None = None


class Provider(Protocol):
    """Contract.

    - ``stream`` never raises: a failure is a final ``StreamFailed``; a cancelled task and a closed generator are the two exceptions.
    - Exactly one ``StreamDone`` or ``StreamFailed`` comes last; an upstream that ends without its own terminal event is a failure.
    - It does not retry on its own and keeps no state between calls but connections and caches that it can lose.
    - Closing the generator or cancelling its task ends the upstream request at once.
    - ``close`` releases connections; it may be called twice.
    """

    name: str

    def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]: ...

    async def close(self) -> None: ...
