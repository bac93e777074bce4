"""What a run does so that its model calls come to an answer: makes room, and finds another model."""

from features.agent.interruption import Interruption, RunStopped
from features.agent.model_call import CallFailure
from features.agent.session_compaction import SessionCompaction
from features.agent.session_state import SessionState
from features.contracts.errors import PumiceError
from features.contracts.events import ModelFallback
from features.contracts.extension_events import ModelSelected
from features.contracts.models import Model

__all__ = ["CallRecovery"]


class CallRecovery:
    """One run's. It compacts at most once for a call that was too long, and no more of its own accord once that has not helped."""

    def __init__(self, state: SessionState, compaction: SessionCompaction, stop: Interruption) -> None:
        self._state = state
        self._compaction = compaction
        self._stop = stop
        self._may_compact = True
        self._may_recover = True
        self._fell_back_to = ""

    def progressed(self) -> None:
        """There was a good answer, or somebody said something new."""
        self._may_recover = True

    async def choose_model(self) -> Model:
        """The session's model; while that is not to be had, a fallback, of which the person hears once."""
        own = self._state.model
        model = self._state.services.choice.first(own)
        if model.reference == own.reference:
            self._fell_back_to = ""
        elif model.reference != self._fell_back_to:
            await self._tell_fallback(own, model, "unavailable")
        return model

    async def make_room(self, model: Model) -> None:
        """Compact before a call that would come too near the model's limit, or because somebody asked for it.

        Raises:
            RunStopped: when told to stop.
        """
        wanted = self._compaction.requested
        if wanted is None and not (self._may_compact and self._compaction.is_due(model)):
            return
        try:
            await self._compaction.run("threshold" if wanted is None else "manual", model, self._stop, instructions=wanted or "")
        except PumiceError:
            self._may_compact = False  # the call is made as it is; the next run tries again
        else:
            self._may_compact = not self._compaction.is_due(model)

    async def after(self, model: Model, failure: CallFailure, tried: set[str]) -> bool:
        """Whether to ask again after a failure that no retry mends.

        Args:
            tried: references of the models that were asked for this answer; grows.
        """
        if self._stop.requested:
            return False
        if failure.kind == "overflow":
            return await self._shortened(model)
        other = self._state.services.choice.next(self._state.model, model, failure.kind, failure.retry_after_s, tried)
        if other is None:
            return False
        await self._stop.whole(self._tell_fallback(model, other, failure.kind))
        return True

    async def _shortened(self, model: Model) -> bool:
        if not self._may_recover or not self._compaction.enabled:
            return False
        self._may_recover = False
        try:
            await self._compaction.run("overflow", model, self._stop, limit=max(self._compaction.tokens(), 1))
        except RunStopped:
            return True  # the next round stores that the run was stopped
        except PumiceError:
            return False
        return True

    async def _tell_fallback(self, failed: Model, other: Model, reason: str) -> None:
        self._fell_back_to = other.reference
        self._state.listeners.emit(ModelFallback(from_model=failed.reference, to_model=other.reference, reason=reason))
        if self._state.extensions.wants(ModelSelected):
            await self._state.extensions.dispatch(ModelSelected(other, self._state.thinking, "fallback"))
