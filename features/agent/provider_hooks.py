"""What extensions have to say about a call over HTTP."""

from collections.abc import Mapping
from typing import Any

from features.contracts.extension_events import BeforeProviderHeaders, BeforeProviderPayload, ProviderFailed, ProviderResponded
from features.contracts.models import ProviderHooks
from features.extensions import ExtensionRunner

__all__ = ["provider_hooks"]

_WANTED = (BeforeProviderHeaders, BeforeProviderPayload, ProviderResponded, ProviderFailed)
_AUTHENTICATION = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie", "x-amz-security-token"}
)


def provider_hooks(extensions: ExtensionRunner) -> ProviderHooks | None:
    """None where no extension has anything to say."""
    return _Hooks(extensions) if any(extensions.wants(event) for event in _WANTED) else None


class _Hooks:
    """Implements ``ProviderHooks``. Looks for authentication once more, whatever the provider has left out."""

    def __init__(self, extensions: ExtensionRunner) -> None:
        self._extensions = extensions

    async def headers(self, headers: dict[str, str]) -> dict[str, str]:
        if not self._extensions.wants(BeforeProviderHeaders):
            return headers
        kept = {name: value for name, value in headers.items() if _is_secret(name)}
        event = await self._extensions.dispatch(BeforeProviderHeaders(_plain(headers)))
        return {**_plain(event.headers), **kept}

    async def payload(self, wire_format: str, payload: dict[str, Any]) -> dict[str, Any]:
        if not self._extensions.wants(BeforeProviderPayload):
            return payload
        return (await self._extensions.dispatch(BeforeProviderPayload(wire_format, payload))).payload

    async def responded(self, status: int, headers: Mapping[str, str]) -> None:
        if self._extensions.wants(ProviderResponded):
            await self._extensions.dispatch(ProviderResponded(status, _plain(headers)))

    async def failed(self, message: str) -> None:
        if self._extensions.wants(ProviderFailed):
            await self._extensions.dispatch(ProviderFailed(message))


def _is_secret(name: str) -> bool:
    return name.lower() in _AUTHENTICATION


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not _is_secret(name)}
