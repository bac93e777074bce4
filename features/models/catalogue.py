"""Windows and prices of known models, from the ``genai-prices`` package; nothing is fetched from the network."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from features.contracts.messages import Cost, Usage
from features.contracts.models import Model
from features.models.abilities import Abilities, claude_abilities, gemini_abilities, is_chat_model, openai_abilities, openai_api
from features.models.config import ModelOverride, ProviderConfig
from features.models.local_files import BUNDLED, bundled_file

__all__ = ["Catalogue", "priced"]

_APIS = {
    "anthropic": "anthropic-messages",
    "openai-compatible": "openai-completions",
    "google": "google-generative-ai",
    "claude-code": "claude-code",
    "local": "openai-completions",
}
_LISTS = {"anthropic": "anthropic", "openai": "openai", "google": "google", "claude-code": "anthropic"}
"""Which part of the price list a kind of provider uses; the others are found by their address."""
_MAX_LISTED = 200
_PRICES = {"input": "input_mtok", "output": "output_mtok", "cache_read": "cache_read_mtok", "cache_write": "cache_write_mtok"}


class Catalogue:
    """What is known of one provider's models: the price list, then the corrections of the configuration."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._overrides = {override.id: override for override in config.models}
        self._known: dict[str, Model] = {}
        self._listed: Any = None
        self._looked_up = False

    def models(self) -> list[Model]:
        """Configured models first, then the listed ones; the many hundred of a marketplace are left out, though each can be named."""
        ids = list(self._overrides)
        if self._config.kind == "local" and BUNDLED not in self._overrides and bundled_file() is not None:
            ids.append(BUNDLED)
        listing = self._listing()
        if listing is not None and len(listing.models) <= _MAX_LISTED:
            names = [info.id for info in listing.models if not info.deprecated and self._offered(info.id)]
            ids += [name for name in names if name not in self._overrides]
        return [self.model(name) for name in ids]

    def model(self, id: str) -> Model:
        model = self._known.get(id)
        if model is None:
            if len(self._known) > 2000:  # ids come from chats, so this is bounded
                self._known.clear()
            model = self._known[id] = self._describe(id)
        return model

    def max_output(self, id: str) -> int | None:
        """The output limit where it is known and not guessed."""
        override = self._overrides.get(id)
        if override is not None and override.max_output is not None:
            return override.max_output
        return self.model(id).max_output if self._config.kind in (*_LISTS, "local") else None

    def cost(self, model: Model, usage: Usage, now: datetime) -> Cost:
        """What a call cost, by the price step that its input reaches. Without a key, Claude Code uses its own subscription."""
        if self._config.kind == "claude-code" and not self._config.api_key:
            return Cost()
        override = self._overrides.get(model.id)
        info = None if override is not None and override.prices is not None else self._info(model.id)
        if info is None:
            return priced(model, usage)
        size = usage.input + usage.cache_read + usage.cache_write
        rates = {name: _rate(info, key, size, now) for name, key in _PRICES.items()}
        return _cost(
            usage, {**rates, "cache_read": rates["cache_read"] or rates["input"], "cache_write": rates["cache_write"] or rates["input"]}
        )

    def _describe(self, id: str) -> Model:
        abilities = self._abilities(id)
        fields: dict[str, Any] = {"context_window": abilities.context_window}
        info = self._info(id)
        if info is not None:
            fields["name"] = info.name or id
            if info.context_window:
                fields["context_window"] = info.context_window
            for name, key in _PRICES.items():
                fields[f"{name}_price"] = _rate(info, key, 0, None)
        model = Model(
            provider=self._config.name,
            id=id,
            api=openai_api(id) if self._config.kind == "openai" else _APIS[self._config.kind],
            max_output=abilities.max_output,
            input=abilities.input,
            reasoning=abilities.reasoning,
            **fields,
        )
        override = self._overrides.get(id)
        return model if override is None else _corrected(model, override)

    def _abilities(self, id: str) -> Abilities:
        match self._config.kind:
            case "anthropic" | "claude-code":
                return claude_abilities(id)
            case "openai":
                return openai_abilities(id)
            case "google":
                return gemini_abilities(id)
            case "local":
                return Abilities(context_window=8_192, max_output=2_048)
            case _:
                return Abilities()

    def _offered(self, id: str) -> bool:
        kind = _LISTS.get(self._config.kind)
        return kind is None or is_chat_model(kind, id)

    def _info(self, id: str) -> Any:
        listing = self._listing()
        return None if listing is None else listing.find_model(id)

    def _listing(self) -> Any:
        """The price list's own entry for this provider, or None."""
        if not self._looked_up:
            self._looked_up = True
            try:
                from genai_prices.data_snapshot import get_snapshot
            except ImportError:  # the extras bring it; without it a model has the default window and no price
                return None
            named = _LISTS.get(self._config.kind)
            if named is None and not self._config.base_url:
                return None
            try:
                self._listed = get_snapshot().find_provider(None, named, None if named else self._config.base_url)
            except LookupError:
                return None
        return self._listed


def priced(model: Model, usage: Usage) -> Cost:
    """The cost by the model's own flat prices."""
    return _cost(
        usage,
        {
            "input": model.input_price,
            "output": model.output_price,
            "cache_read": model.cache_read_price,
            "cache_write": model.cache_write_price,
        },
    )


def _cost(usage: Usage, rates: dict[str, float]) -> Cost:
    parts = {name: getattr(usage, name) * rate / 1_000_000 for name, rate in rates.items()}
    return Cost(**parts, total=sum(parts.values()))


def _rate(info: Any, key: str, input_tokens: int, now: datetime | None) -> float:
    """Dollars per million tokens; the step of a stepped price holds for all tokens of the call."""
    if isinstance(info.prices, list):
        if not info.prices:
            return 0.0
        prices = info.get_prices(now) if now is not None else info.prices[-1].prices
    else:
        prices = info.prices
    price = getattr(prices, key, None)
    if price is None:
        return 0.0
    if isinstance(price, Decimal | int | float):
        return float(price)
    rate = price.base
    for step in price.tiers:
        if input_tokens > step.start:
            rate = step.price
    return float(rate)


def _corrected(model: Model, override: ModelOverride) -> Model:
    changes: dict[str, Any] = {
        key: value
        for key in ("name", "context_window", "max_output", "input", "reasoning")
        if (value := getattr(override, key)) is not None
    }
    for name, price in (override.prices or {}).items():
        changes[f"{name}_price"] = price
    return msgspec.structs.replace(model, **changes)
