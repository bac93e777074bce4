"""Google's Gemini models, through the official SDK."""

import logging
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from features.contracts.models import Model, ModelRequest
from features.contracts.stream import PartialMessage
from features.models import google_wire
from features.models.abilities import gemini_family
from features.models.call_hooks import HeaderChanges
from features.models.catalogue import Catalogue
from features.models.client_lanes import shared_tls
from features.models.config import ProviderConfig
from features.models.dialect import Dialect, ProviderServices
from features.models.failures import UpstreamFailure, google_failure, retry_after_s
from features.models.google_answer import GoogleAnswer
from features.models.http_provider import HttpProvider
from features.models.transcript import TranscriptCache
from features.models.wire import join_request

if TYPE_CHECKING:
    import httpx2

__all__ = ["GoogleProvider"]

_VERSION = re.compile(r"v\d\w*")


class GoogleProvider(HttpProvider):
    extra = "google"

    def __init__(self, config: ProviderConfig, catalogue: Catalogue, services: ProviderServices) -> None:
        super().__init__(config, services, [_GenerateContent(config.name, catalogue, services)])

    def _open_client(self) -> Any:
        import httpx2
        from google import genai

        logging.getLogger("google_genai").setLevel(logging.INFO)  # its debug records hold whole conversations
        limits = self._services.limits
        http = httpx2.AsyncClient(verify=shared_tls(), timeout=httpx2.Timeout(limits.first_event_s, connect=limits.connect_s))
        base, version = _address(self._config.base_url or "https://generativelanguage.googleapis.com")
        options: Any = {
            "base_url": base,
            "api_version": version,
            "httpx_async_client": http,
            "httpx_client": httpx2.Client(verify=shared_tls()),
        }
        # what is said here is not looked up in the environment behind the configuration's back
        return _Client(genai.Client(api_key=self._config.api_key, vertexai=False, http_options=options), http)

    async def _send(self, client: "_Client", path: str, body: bytes, headers: HeaderChanges) -> "httpx2.Response":
        return await client.send(path, body, headers)

    def _headers(self, client: "_Client") -> dict[str, Any]:
        return client.headers

    @property
    def _sdk_errors(self) -> tuple[type[Exception], type[Exception]]:
        import httpx2
        from google.genai import errors

        return errors.APIError, httpx2.TransportError

    def _status_failure(self, error: Any) -> UpstreamFailure:
        headers = error.response.headers
        return google_failure(error.code, error.details, retry_after=retry_after_s(headers, self._services.clock.now()))


class _Client:
    """The SDK's client, reached where it takes bytes and gives the response.

    Its public method for this turns every message into an object, checks it, and turns it back; 600 messages take longer than the network.
    """

    def __init__(self, client: Any, http: "httpx2.AsyncClient") -> None:
        self._api = client._api_client  # noqa: SLF001 - see above; the version is bounded in pyproject.toml
        self._http = http

    @property
    def headers(self) -> dict[str, Any]:
        built = self._api._build_request("post", "models", {})  # noqa: SLF001
        return dict(built.headers)

    async def send(self, path: str, body: bytes, headers: HeaderChanges) -> "httpx2.Response":
        request = self._api._build_request("post", path, {})  # noqa: SLF001
        request.data = body
        request.timeout = self._http.timeout
        gone = {name.lower() for name, value in headers.items()}
        request.headers = {name: value for name, value in request.headers.items() if name.lower() not in gone}
        request.headers.update({name: value for name, value in headers.items() if value is not None})
        answer = await self._api._async_request_once(request, stream=True, implicit_retry=False)  # noqa: SLF001
        response: httpx2.Response = answer.response_stream
        return response

    async def close(self) -> None:
        await self._http.aclose()


def _address(base_url: str) -> tuple[str, str]:
    """The base address, which the SDK wants without its version, and that version."""
    base, _, last = base_url.rstrip("/").rpartition("/")
    return (base, last) if _VERSION.fullmatch(last) else (base_url, "v1")


class _GenerateContent(Dialect):
    api = "google-generative-ai"

    def __init__(self, provider: str, catalogue: Catalogue, services: ProviderServices) -> None:
        super().__init__(provider, catalogue, services, google_wire.encode_messages)
        self._nesting = TranscriptCache(google_wire.nested_images, services.clock)

    def path(self, model: Model) -> str:
        return f"models/{quote(model.id, safe='')}:streamGenerateContent?alt=sse"

    def body(self, model: Model, request: ModelRequest, refused_images: frozenset[str]) -> bytes:
        target = msgspec.structs.replace(self._target(model, request, refused_images), thinking=True, unsigned_thinking=False, id_limit=64)
        nested = gemini_family(model.id)[1] >= (3, 0)
        transcripts = self._nesting if nested else self._transcripts
        messages = transcripts.pieces(request.session_id, target, request.messages)
        return join_request(google_wire.request_head(model, request), messages, under="contents")

    def reader(self, model: Model, partial: PartialMessage) -> GoogleAnswer:
        return GoogleAnswer(partial, self._price(model), self._services.ids)

    def clear(self) -> None:
        super().clear()
        self._nesting.clear()
