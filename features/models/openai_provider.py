"""OpenAI's models, and those of every server that speaks its Chat Completions API, through the official SDK."""

from collections.abc import Mapping
from typing import Any

import msgspec

from features.contracts.models import Model, ModelRequest
from features.contracts.stream import PartialMessage
from features.models import openai_wire, responses_wire
from features.models.catalogue import Catalogue
from features.models.config import ProviderConfig
from features.models.dialect import Dialect, ProviderServices
from features.models.failures import UpstreamFailure
from features.models.http_provider import HttpCall
from features.models.openai_answer import OpenAIAnswer
from features.models.responses_answer import ResponsesAnswer
from features.models.sdk_provider import SdkProvider
from features.models.wire import join_request

__all__ = ["OpenAIProvider"]


class OpenAIProvider(SdkProvider):
    """A model that reasons is asked through the Responses API, which takes its reasoning back; the others through Chat Completions.

    A compatible server may do without a key and is asked through Chat Completions alone. So is a gateway to OpenAI's models
    that turns out to have no Responses API.
    """

    extra = "openai"
    base_url = "https://api.openai.com/v1"

    def __init__(self, config: ProviderConfig, catalogue: Catalogue, services: ProviderServices) -> None:
        self._official = config.kind == "openai"
        self._completions = _Completions(config.name, catalogue, services, openai_wire.encode_messages)
        self._completions.official = self._official
        self._responses = _Responses(config.name, catalogue, services, responses_wire.encode_messages)
        self._has_responses = True
        super().__init__(config, services, [self._completions, self._responses])

    def _sdk(self) -> Any:
        import openai

        return openai

    def _client_type(self, sdk: Any) -> Any:
        return sdk.AsyncOpenAI

    def _key(self) -> str:
        return self._config.api_key or "none"

    def _check_key(self) -> None:
        if self._official:
            super()._check_key()

    def _dialect(self, model: Model) -> Dialect:
        return self._responses if model.api == _Responses.api and self._has_responses else self._completions

    def _adapt(self, call: HttpCall, failure: UpstreamFailure, error: Any) -> bool:
        if call.dialect is self._responses and self._config.base_url and _no_such_page(error):
            self._has_responses = False
            call.speak(self._completions)
            call.write(self._refused(call))
            return True
        return super()._adapt(call, failure, error)


class _Completions(Dialect):
    """The Chat Completions API."""

    api = "openai-completions"
    official = False

    def path(self, model: Model) -> str:
        return "/chat/completions"

    def body(self, model: Model, request: ModelRequest, refused_images: frozenset[str]) -> bytes:
        head = openai_wire.request_head(model, request, official=self.official, max_output=self._catalogue.max_output(model.id))
        messages = self._messages(request, self._target(model, request, refused_images))
        return join_request(head, [openai_wire.system_message(request), *messages])

    def reader(self, model: Model, partial: PartialMessage) -> OpenAIAnswer:
        return OpenAIAnswer(partial, self._price(model), context_window=model.context_window)


class _Responses(Dialect):
    """The Responses API; nothing is stored at the service, so reasoning comes back encrypted and is sent again."""

    api = "openai-responses"

    def path(self, model: Model) -> str:
        return "/responses"

    def body(self, model: Model, request: ModelRequest, refused_images: frozenset[str]) -> bytes:
        target = msgspec.structs.replace(self._target(model, request, refused_images), thinking=True, unsigned_thinking=False, id_limit=64)
        head = responses_wire.request_head(model, request, max_output=self._catalogue.max_output(model.id))
        return join_request(head, self._messages(request, target), under="input")

    def reader(self, model: Model, partial: PartialMessage) -> ResponsesAnswer:
        return ResponsesAnswer(partial, self._price(model))


def _no_such_page(error: Any) -> bool:
    """Whether a server does not know the address at all; of a model that it does not know it says so with an error code."""
    body = error.body.get("error", error.body) if isinstance(error.body, Mapping) else None
    return error.status_code in (404, 405, 501) and not (isinstance(body, Mapping) and body.get("code"))
