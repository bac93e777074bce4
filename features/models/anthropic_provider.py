"""Anthropic's models, through the official SDK."""

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from features.contracts.messages import AssistantMessage, ThinkingBlock, ToolCall, ToolResultMessage, Usage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import PartialMessage
from features.models.abilities import thinks_adaptively
from features.models.anthropic_answer import AnthropicAnswer
from features.models.anthropic_wire import encode_messages, request_head
from features.models.catalogue import Catalogue
from features.models.client_lanes import shared_tls
from features.models.config import ProviderConfig
from features.models.http_provider import HttpProvider, ProviderServices
from features.models.normalise import Target
from features.models.wire import join_request

if TYPE_CHECKING:
    import httpx2

__all__ = ["AnthropicProvider"]


class AnthropicProvider(HttpProvider):
    """The Messages API, with prompt caching."""

    def __init__(self, config: ProviderConfig, catalogue: Catalogue, services: ProviderServices) -> None:
        super().__init__(config, catalogue, services, encode_messages)

    def _body(self, model: Model, request: ModelRequest) -> bytes:
        target = Target(
            provider=self.name,
            api=model.api,
            model=model.id,
            images="image" in model.input,
            thinking=True,
            time_zone=request.time_zone,
            id_limit=64,
        )
        head = request_head(model, request, thinking_ok=thinks_adaptively(model.id) or not _round_without_thinking(request, target))
        return join_request(head, self._messages(model, request, target))

    def _reader(self, model: Model, partial: PartialMessage) -> AnthropicAnswer:
        def price(usage: Usage) -> Usage:
            return msgspec.structs.replace(usage, cost=self._catalogue.cost(model, usage, self._services.clock.now()))

        return AnthropicAnswer(partial, price)

    def _open_client(self) -> Any:
        import anthropic
        import httpx2

        logging.getLogger("anthropic").setLevel(logging.INFO)  # its debug records hold whole conversations
        limits = self._services.limits
        return anthropic.AsyncAnthropic(
            api_key=self._config.api_key,
            base_url=self._config.base_url or "https://api.anthropic.com",
            max_retries=0,
            timeout=httpx2.Timeout(limits.first_event_s, connect=limits.connect_s),
            http_client=anthropic.DefaultAsyncHttpxClient(verify=shared_tls()),
        )

    async def _send(self, client: Any, body: bytes) -> "httpx2.Response":
        import anthropic
        import httpx2

        response: httpx2.Response = await client.post(
            "/v1/messages", content=body, cast_to=httpx2.Response, stream=True, stream_cls=anthropic.AsyncStream[Any]
        )
        return response

    @property
    def _sdk_errors(self) -> tuple[type[Exception], type[Exception]]:
        import anthropic

        return anthropic.APIStatusError, anthropic.APIConnectionError


def _round_without_thinking(request: ModelRequest, target: Target) -> bool:
    """Whether a tool round is going on whose first message has no thinking that can be sent back.

    With a token budget the API wants that message to begin with thinking; such a round ends without it.
    """
    for message in reversed(request.messages):
        if isinstance(message, ToolResultMessage):
            continue
        if not isinstance(message, AssistantMessage) or message.stop_reason in ("error", "aborted"):
            return False
        if not any(isinstance(block, ToolCall) for block in message.content):
            return False
        first = message.content[0]
        own = (message.provider, message.api, message.model) == (target.provider, target.api, target.model)
        return not (own and isinstance(first, ThinkingBlock) and first.thinking_signature)
    return False
