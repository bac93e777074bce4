"""The models of one session: the host's, and those that its extensions bring."""

from collections.abc import Sequence
from typing import Protocol

from features.contracts.errors import UserMustAct
from features.contracts.models import Model, Provider

__all__ = ["ModelSource", "SessionModels"]


class ModelSource(Protocol):
    """As much of a ``ModelRegistry`` as a session needs."""

    def resolve(self, reference: str) -> Model: ...

    def provider(self, name: str) -> Provider: ...


class SessionModels:
    """Implements ``ModelSource``. Whoever brings a provider closes it."""

    def __init__(self, host: ModelSource) -> None:
        self._host = host
        self._brought: dict[str, tuple[Provider, dict[str, Model]]] = {}

    def models(self) -> list[Model]:
        """Those that extensions bring."""
        return [model for _, models in self._brought.values() for model in models.values()]

    def resolve(self, reference: str) -> Model:
        """
        Raises:
            UserMustAct: there is no such model.
        """
        name, _, model_id = reference.strip().partition("/")
        if name not in self._brought:
            return self._host.resolve(reference)
        models = self._brought[name][1]
        if model_id not in models:
            raise UserMustAct(f"There is no model {reference.strip()[:100]!r}. {name} has {', '.join(models)}.")
        return models[model_id]

    def provider(self, name: str) -> Provider:
        return self._brought[name][0] if name in self._brought else self._host.provider(name)

    def add(self, provider: Provider, models: Sequence[Model]) -> None:
        """
        Raises:
            ValueError: there is a provider of that name.
        """
        if provider.name in self._brought or self._is_hosts(models[0]):
            raise ValueError(f"its provider {provider.name!r} is not used: there is one of that name")
        self._brought[provider.name] = provider, {model.id: model for model in models}

    def remove(self, name: str) -> None:
        self._brought.pop(name, None)

    def _is_hosts(self, model: Model) -> bool:
        try:
            self._host.provider(model.provider)
        except Exception:
            return False
        return True
