"""Anthropic's models, through the official SDK."""

from typing import Any

import msgspec

from features.contracts.messages import AssistantMessage, ThinkingBlock, ToolCall, ToolResultMessage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import PartialMessage
from features.models.abilities import thinks_adaptively
from features.models.anthropic_answer import AnthropicAnswer
from features.models.anthropic_wire import encode_messages, request_head
from features.models.catalogue import Catalogue
from features.models.config import ProviderConfig
from features.models.dialect import Dialect, ProviderServices
from features.models.normalise import Target
from features.models.sdk_provider import SdkProvider
from features.models.wire import join_request

__all__ = ["AnthropicProvider"]


class AnthropicProvider(SdkProvider):
    extra = "anthropic"
    base_url = "https://api.anthropic.com"

    def __init__(self, config: ProviderConfig, catalogue: Catalogue, services: ProviderServices) -> None:
        super().__init__(config, services, [_Messages(config.name, catalogue, services, encode_messages)])

    def _sdk(self) -> Any:
        import anthropic

        return anthropic

    def _client_type(self, sdk: Any) -> Any:
        return sdk.AsyncAnthropic


class _Messages(Dialect):
    """The Messages API, with prompt caching."""

    api = "anthropic-messages"

    def path(self, model: Model) -> str:
        return "/v1/messages"

    def body(self, model: Model, request: ModelRequest, refused_images: frozenset[str]) -> bytes:
        target = msgspec.structs.replace(self._target(model, request, refused_images), thinking=True, id_limit=64)
        head = request_head(model, request, thinking_ok=thinks_adaptively(model.id) or not _round_without_thinking(request, target))
        return join_request(head, self._messages(request, target))

    def reader(self, model: Model, partial: PartialMessage) -> AnthropicAnswer:
        return AnthropicAnswer(partial, self._price(model))


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
