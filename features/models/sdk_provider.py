"""What the SDKs of Anthropic and OpenAI have in common: one generator made both."""

import logging
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from features.models.call_hooks import HeaderChanges
from features.models.client_lanes import shared_tls
from features.models.http_provider import HttpProvider

if TYPE_CHECKING:
    import httpx2

__all__ = ["SdkProvider"]


class SdkProvider(HttpProvider):
    base_url: str

    @abstractmethod
    def _sdk(self) -> Any:
        """The package, imported on the first call of it."""

    @abstractmethod
    def _client_type(self, sdk: Any) -> Any: ...

    def _open_client(self) -> Any:
        import httpx2

        sdk = self._sdk()
        logging.getLogger(sdk.__name__).setLevel(logging.INFO)  # its debug records hold whole conversations
        limits = self._services.limits
        return self._client_type(sdk)(
            api_key=self._key(),
            base_url=self._base_url(),
            max_retries=0,
            timeout=httpx2.Timeout(limits.first_event_s, connect=limits.connect_s),
            http_client=sdk.DefaultAsyncHttpxClient(verify=shared_tls()),
        )

    def _key(self) -> str | None:
        return self._config.api_key

    def _base_url(self) -> str:
        return self._config.base_url or self.base_url

    def _headers(self, client: Any) -> dict[str, Any]:
        return {**client.default_headers}

    async def _send(self, client: Any, path: str, body: bytes, headers: HeaderChanges) -> "httpx2.Response":
        import httpx2

        sdk = self._sdk()
        changed = {name: sdk.Omit() if value is None else value for name, value in headers.items()}
        response: httpx2.Response = await client.post(
            path,
            content=body,
            cast_to=httpx2.Response,
            stream=True,
            stream_cls=sdk.AsyncStream[Any],
            options={"headers": changed} if changed else {},
        )
        return response

    @property
    def _sdk_errors(self) -> tuple[type[Exception], type[Exception]]:
        sdk = self._sdk()
        return sdk.APIStatusError, sdk.APIConnectionError
