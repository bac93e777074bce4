"""What the configuration says about a provider."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from features.contracts.errors import OperatorMustAct

__all__ = ["KINDS", "ModelOverride", "ProviderConfig"]

KINDS = ("anthropic", "openai", "openai-compatible", "google", "claude-code", "local", "offline")


class ModelOverride(msgspec.Struct, frozen=True, kw_only=True):
    """An extra model, or corrections of the catalogue; what is None stays as the catalogue has it.

    ``prices`` are US dollars per million tokens, under the names ``input``, ``output``, ``cache_read`` and ``cache_write``.
    ``file`` is where a local model's weights are.
    """

    id: str
    name: str | None = None
    context_window: int | None = None
    max_output: int | None = None
    input: tuple[Literal["text", "image"], ...] | None = None
    reasoning: bool | None = None
    prices: Mapping[str, float] | None = None
    file: Path | None = None


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One ``[providers.NAME]``. ``command`` is Claude Code's program; without it, the one on the PATH.

    Raises:
        OperatorMustAct: this version cannot serve it as it is written.
    """

    name: str
    kind: str
    api_key: str | None = None
    base_url: str | None = None
    command: str | None = None
    models: tuple[ModelOverride, ...] = ()

    def __post_init__(self) -> None:
        key = f"providers.{self.name}"
        served = ", ".join(KINDS)
        if self.kind not in KINDS:
            raise OperatorMustAct(f"{key}.kind is {self.kind!r}. Use one of: {served}.")
        if not self.name or "/" in self.name:
            raise OperatorMustAct(f"{key} is no name for a provider. Give it a name without a slash.")
        if self.kind == "openai-compatible" and not self.base_url:
            raise OperatorMustAct(f"{key}.base_url is missing. Set it to the server's address, like http://127.0.0.1:11434/v1.")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise OperatorMustAct(f"{key}.base_url is {self.base_url!r}. Write it with http:// or https://.")
