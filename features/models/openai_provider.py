"""OpenAI's models, and those of every server that speaks its Chat Completions API, through the official SDK."""

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from features.contracts.messages import Usage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import PartialMessage
from features.models.catalogue import Catalogue
from features.models.client_lanes import shared_tls
from features.models.config import ProviderConfig
from features.models.http_provider import HttpProvider, ProviderServices
from features.models.normalise import Target
from features.models.openai_answer import OpenAIAnswer
from features.models.openai_wire import encode_messages, request_head, system_message
from features.models.wire import join_request

if TYPE_CHECKING:
    import httpx2

__all__ = ["OpenAIProvider"]


class OpenAIProvider(HttpProvider):
    """The Chat Completions API. A compatible server may do without a key."""

    def __init__(self, config: ProviderConfig, catalogue: Catalogue, services: ProviderServices) -> None:
        super().__init__(config, catalogue, services, encode_messages)
        self._official = config.kind == "openai"

    def _body(self, model: Model, request: ModelRequest) -> bytes:
        target = Target(
            provider=self.name,
            api=model.api,
            model=model.id,
            images="image" in model.input,
            thinking=False,
            time_zone=request.time_zone,
            id_limit=40,
        )
        head = request_head(model, request, official=self._official, max_output=self._catalogue.max_output(model.id))
        return join_request(head, [system_message(request), *self._messages(model, request, target)])

    def _reader(self, model: Model, partial: PartialMessage) -> OpenAIAnswer:
        def price(usage: Usage) -> Usage:
            return msgspec.structs.replace(usage, cost=self._catalogue.cost(model, usage, self._services.clock.now()))

        return OpenAIAnswer(partial, price, context_window=model.context_window)

    def _check_key(self) -> None:
        if self._official:
            super()._check_key()

    def _open_client(self) -> Any:
        import httpx2
        import openai

        logging.getLogger("openai").setLevel(logging.INFO)  # its debug records hold whole conversations
        limits = self._services.limits
        return openai.AsyncOpenAI(
            api_key=self._config.api_key or "none",
            base_url=self._config.base_url or "https://api.openai.com/v1",
            max_retries=0,
            timeout=httpx2.Timeout(limits.first_event_s, connect=limits.connect_s),
            http_client=openai.DefaultAsyncHttpxClient(verify=shared_tls()),
        )

    async def _send(self, client: Any, body: bytes) -> "httpx2.Response":
        import httpx2
        import openai

        response: httpx2.Response = await client.post(
            "/chat/completions", content=body, cast_to=httpx2.Response, stream=True, stream_cls=openai.AsyncStream[Any]
        )
        return response

    @property
    def _sdk_errors(self) -> tuple[type[Exception], type[Exception]]:
        import openai

        return openai.APIStatusError, openai.APIConnectionError
