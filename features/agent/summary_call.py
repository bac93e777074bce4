"""The model calls behind a summary: retried, charged and redacted as every other call, and shown to nobody."""

import msgspec

from features.agent.interruption import Interruption
from features.agent.model_call import CallReply, ModelCall
from features.agent.retries import Retries
from features.agent.session_state import SessionState
from features.contracts.errors import UserMustAct
from features.contracts.messages import AssistantMessage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import FailureKind

__all__ = ["SummaryCall"]


class SummaryCall:
    """Implements the compactor's ``Ask``.

    Raises:
        RunStopped: when told to stop.
        UserMustAct: the chat has spent what it may.
    """

    def __init__(self, state: SessionState, model: Model, stop: Interruption) -> None:
        self._state = state
        self._model = model
        self._stop = stop
        self._retries = Retries(state.services.retry, state.services.random)

    async def __call__(self, request: ModelRequest) -> tuple[AssistantMessage, FailureKind | None]:
        attempt, tried = 0, set[str]()
        while True:
            attempt += 1
            reply = await self._ask(request)
            failure = reply.failure
            if failure is None:
                return reply.message, None
            delay = self._retries.delay(failure, attempt)
            if delay is not None:
                with self._stop.cut_here():
                    await self._state.services.clock.sleep(delay)
                continue
            other = self._state.services.choice.next(self._state.model, self._model, failure.kind, failure.retry_after_s, tried)
            if other is None or other.context_window < self._model.context_window:
                return reply.message, failure.kind
            self._model, attempt = other, 0

    async def _ask(self, request: ModelRequest) -> CallReply:
        state = self._state
        call = ModelCall(state, self._model, emit=_nobody)
        with self._stop.cut_here():
            if state.spending is not None and (refusal := await state.spending.refusal()) is not None:
                raise UserMustAct(refusal)
        reply = await call.run(state.services.models.provider(self._model.provider), self._fitted(request), self._stop)
        reply = msgspec.structs.replace(reply, message=state.services.redaction.assistant(reply.message))
        if state.spending is not None:
            await self._stop.whole(state.spending.charge(reply.message))
        with self._stop.cut_here():
            return reply

    def _fitted(self, request: ModelRequest) -> ModelRequest:
        return msgspec.structs.replace(
            request,
            thinking=request.thinking if self._model.reasoning else "off",
            max_output=min(request.max_output or self._model.max_output, self._model.max_output),
            session_id=f"{self._state.transcript.manager.id}:summary",
            time_zone=self._state.tool_context.time_zone,
        )


def _nobody(event: object) -> None:
    """Nobody watches a summary grow."""
