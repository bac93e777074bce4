"""The models a host may use."""

import asyncio
import difflib
from collections.abc import Callable, Sequence

import msgspec

from features.contracts.clock import Clock
from features.contracts.errors import OperatorMustAct, UserMustAct
from features.contracts.models import Model, Provider
from features.models.catalogue import Catalogue
from features.models.config import ProviderConfig
from features.models.dialect import ProviderServices
from features.models.offline import OFFLINE_MODEL, OfflineProvider
from features.models.preflight import Problem, problem_of
from features.models.sse import StreamLimits

__all__ = ["ModelRegistry"]

_OFFLINE = "offline"


class ModelRegistry:
    """Knows the configured providers and their models; providers are made, and their packages imported, when they are first asked.

    Args:
        max_concurrency: model calls that go on at a time, over all providers; further ones wait.
        limits: how long a silent service is waited for.
    """

    def __init__(
        self,
        providers: Sequence[ProviderConfig],
        *,
        clock: Clock,
        ids: Callable[[], str],
        max_concurrency: int,
        limits: StreamLimits | None = None,
    ) -> None:
        self._configs: dict[str, ProviderConfig] = {}
        for config in providers:
            if config.name in self._configs:
                raise OperatorMustAct(f"providers.{config.name} is there twice. Give one of them another name.")
            if config.name == _OFFLINE and config.kind != _OFFLINE:
                raise OperatorMustAct("providers.offline is the name of the built-in assistant. Give your provider another name.")
            self._configs[config.name] = config
        self._configs.setdefault(_OFFLINE, ProviderConfig(name=_OFFLINE, kind=_OFFLINE))
        self._services = ProviderServices(
            clock=clock,
            ids=ids,
            slots=asyncio.Semaphore(max_concurrency),
            limits=limits or StreamLimits(),
        )
        self._catalogues: dict[str, Catalogue] = {}
        self._providers: dict[str, Provider] = {}

    def models(self) -> list[Model]:
        """All known models of the configured providers, the offline assistant last."""
        models: list[Model] = []
        for name, config in sorted(self._configs.items(), key=lambda item: item[1].kind == _OFFLINE):
            models += [_offline_model(name)] if config.kind == _OFFLINE else self._catalogue(name).models()
        return models

    def resolve(self, reference: str) -> Model:
        """The model that ``provider/id`` names. The id alone will do where only one provider lists it.

        Raises:
            UserMustAct: there is no such provider, or no such model; the text names what comes near.
        """
        name, slash, model_id = reference.strip().partition("/")
        config = self._configs.get(name)
        if slash and model_id and config is not None:
            if config.kind != _OFFLINE:
                return self._catalogue(name).model(model_id)
            if model_id == OFFLINE_MODEL.id:
                return _offline_model(name)
        known = self.models()
        alone = [model for model in known if model.id == reference.strip()]
        if len(alone) == 1:
            return alone[0]
        raise UserMustAct(self._unknown(reference, known))

    def provider(self, name: str) -> Provider:
        """The provider of that name, made on the first call.

        Raises:
            OperatorMustAct: none of that name is configured.
        """
        provider = self._providers.get(name)
        if provider is None:
            provider = self._providers[name] = self._make(name)
        return provider

    async def problem(self, name: str) -> Problem | None:
        """What keeps a configured provider from its work, or None; asks its service whether it takes the key, and nothing else."""
        return await problem_of(self._configs[name])

    async def close(self) -> None:
        providers, self._providers = list(self._providers.values()), {}
        for provider in providers:
            await provider.close()

    def _make(self, name: str) -> Provider:
        config = self._configs.get(name)
        if config is None:
            raise OperatorMustAct(f"there is no provider {name!r}. Add [providers.{name}] or choose one of: {', '.join(self._configs)}.")
        if config.kind == _OFFLINE:
            return OfflineProvider(name, self._services.clock, self._services.ids)
        make = _maker(config.kind)
        return make(config, self._catalogue(name), self._services)

    def _catalogue(self, name: str) -> Catalogue:
        catalogue = self._catalogues.get(name)
        if catalogue is None:
            catalogue = self._catalogues[name] = Catalogue(self._configs[name])
        return catalogue

    def _unknown(self, reference: str, known: Sequence[Model]) -> str:
        shown = reference.strip()[:100]
        names = [model.reference for model in known]
        near = difflib.get_close_matches(shown, names, n=3, cutoff=0.5)
        if not near:
            tail = shown.rpartition("/")[2].lower()
            near = [name for name in names if tail and tail in name.lower()][:3]
        if near:
            return f"There is no model {shown!r}. Did you mean {' or '.join(near)}?"
        return f"There is no model {shown!r}. Write provider/model; the providers here are {', '.join(self._configs)}."


def _offline_model(name: str) -> Model:
    return OFFLINE_MODEL if name == _OFFLINE else msgspec.structs.replace(OFFLINE_MODEL, provider=name)


def _maker(kind: str) -> Callable[[ProviderConfig, Catalogue, ProviderServices], Provider]:
    """Each kind's provider is imported when one of the kind is asked first; its SDK comes later still, with the first call."""
    match kind:
        case "anthropic":
            from features.models.anthropic_provider import AnthropicProvider

            return AnthropicProvider
        case "google":
            from features.models.google_provider import GoogleProvider

            return GoogleProvider
        case "claude-code":
            from features.models.claude_code_provider import ClaudeCodeProvider

            return ClaudeCodeProvider
        case "local":
            from features.models.local_provider import LocalProvider

            return LocalProvider
        case _:
            from features.models.openai_provider import OpenAIProvider

            return OpenAIProvider
