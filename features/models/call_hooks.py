"""What somebody else may see and change of a call over HTTP: never the key."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from features.contracts.models import ProviderHooks
from features.models.failures import UpstreamFailure
from features.models.wire import encode_json

__all__ = ["HeaderChanges", "hooked_body", "hooked_headers", "public_headers"]

log = logging.getLogger("pumice.models")

HeaderChanges = dict[str, str | None]
"""Headers to set; None takes one away."""

_SECRET = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie"})
_FRAMING = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection"})


def public_headers(headers: Mapping[str, Any], key: str | None) -> dict[str, str]:
    """The headers that are no secret: neither by their name nor by holding the key."""
    return {
        name: value
        for name, value in headers.items()
        if isinstance(value, str) and name.lower() not in _SECRET and not (key and key in value)
    }


async def hooked_headers(hooks: ProviderHooks, headers: Mapping[str, Any], key: str | None) -> HeaderChanges:
    """What the hooks would have changed, with what is not theirs to change left out."""
    shown = public_headers(headers, key)
    wanted = await hooks.headers(dict(shown))
    before = {name.lower(): value for name, value in shown.items()}
    changes: HeaderChanges = {}
    for name, value in wanted.items():
        if name.lower() in _SECRET | _FRAMING or before.get(name.lower()) == value:
            continue
        if _sendable(name) and _sendable(value):
            changes[name] = value
        else:
            log.warning("header of a hook cannot be sent", extra={"facts": {"header": name[:100]}})
    kept = {name.lower() for name in wanted}
    changes.update({name: None for name in shown if name.lower() not in kept | _FRAMING})
    return changes


async def hooked_body(hooks: ProviderHooks, api: str, body: bytes) -> bytes:
    payload = await hooks.payload(api, msgspec.json.decode(body))
    try:
        return encode_json(payload)
    except (TypeError, msgspec.MsgspecError, RecursionError) as error:
        raise UpstreamFailure("invalid", f"an extension made a request that is no JSON: {error}") from error


def _sendable(text: object) -> bool:
    return isinstance(text, str) and bool(text) and text.isascii() and text.isprintable()
