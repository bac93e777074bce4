"""Which model is asked: the session's own or, while that is not to be had, one of the host's fallbacks."""

import logging
from collections.abc import Callable

from features.contracts.clock import Clock
from features.contracts.errors import PumiceError
from features.contracts.models import Model
from features.contracts.stream import FailureKind

__all__ = ["ModelChoice", "RestingModels"]

log = logging.getLogger("pumice.agent")

_REST_S = 120.0
_WORTH_ANOTHER = frozenset({"rate_limit", "overloaded", "server", "network", "auth", "billing"})
"""Failures of a service; another one may do better. What is wrong with the request is wrong everywhere."""


class RestingModels:
    """Models that failed a moment ago, over all sessions of a host: nobody waits through the same retries one after another."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def rest(self, model: Model, seconds: float | None) -> None:
        """Leave a model alone for what its service asked for, or two minutes; an hour at most."""
        self._until[model.reference] = self._clock.monotonic() + min(max(seconds or 0.0, _REST_S), 3600.0)

    def is_resting(self, model: Model) -> bool:
        until = self._until.get(model.reference)
        if until is not None and until <= self._clock.monotonic():
            del self._until[model.reference]
            return False
        return until is not None


class ModelChoice:
    """
    Args:
        resolve: makes a model of a reference.
        fallbacks: references, the first choice first.
    """

    def __init__(self, resolve: Callable[[str], Model], fallbacks: tuple[str, ...], resting: RestingModels) -> None:
        self._resolve = resolve
        self._fallbacks = fallbacks
        self._resting = resting

    def first(self, own: Model) -> Model:
        """``own`` unless it rests; it is asked too when all the others rest."""
        if not self._resting.is_resting(own):
            return own
        return next((model for model in self._others(own) if not self._resting.is_resting(model)), own)

    def next(self, own: Model, failed: Model, kind: FailureKind, retry_after_s: float | None, tried: set[str]) -> Model | None:
        """What to ask after ``failed`` has failed for good; None where nothing else will do.

        Args:
            retry_after_s: what its service asked to wait.
            tried: references that this answer has been asked of; grows.
        """
        tried.add(failed.reference)
        if kind not in _WORTH_ANOTHER:
            return None
        others = [model for model in (own, *self._others(own)) if model.reference not in tried]
        rested = next((model for model in others if not self._resting.is_resting(model)), None)
        if rested is not None:
            self._resting.rest(failed, retry_after_s)
        return rested

    def _others(self, own: Model) -> list[Model]:
        models: list[Model] = []
        for reference in self._fallbacks:
            try:
                model = self._resolve(reference)
            except PumiceError as error:
                log.warning("fallback model left out", extra={"facts": {"model": reference, "reason": str(error)}})
            else:
                models += [model] if model.reference != own.reference else []
        return models
