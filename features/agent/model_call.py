"""One call of a model, from the request to the message it comes to."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Literal

import msgspec

from features.agent.interruption import Interruption, RunStopped
from features.agent.live_blocks import LiveBlocks
from features.agent.session_state import SessionState
from features.contracts.clock import unix_ms
from features.contracts.events import MessageStart, MessageUpdate, SessionEvent
from features.contracts.extension_events import MessageStarted, MessageUpdated
from features.contracts.messages import AssistantMessage
from features.contracts.models import Model, ModelRequest, Provider
from features.contracts.stream import (
    BlockEvent,
    FailureKind,
    PartialMessage,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamStarted,
    TextDelta,
)

__all__ = ["CallFailure", "CallReply", "ModelCall"]

log = logging.getLogger("pumice.agent")


class CallFailure(msgspec.Struct, frozen=True):
    """Why a call failed; the message's ``error_message`` says it in words. ``retry_after_s`` is what the service asked for."""

    kind: FailureKind
    retry_after_s: float | None = None


class CallReply(msgspec.Struct, frozen=True):
    """What came of a call: always a message, not redacted; its stop reason is ``error`` where there is a failure."""

    message: AssistantMessage
    failure: CallFailure | None = None


class ModelCall:
    """Streams an answer to the listeners, redacted, and ends with one reply whatever the provider does.

    Args:
        emit: who is told instead of the session's listeners.
    """

    def __init__(self, state: SessionState, model: Model, *, emit: Callable[[SessionEvent], None] | None = None) -> None:
        self.model = model
        self._ids = state.services.ids
        self._emit = state.listeners.emit if emit is None else emit
        self._extensions = state.extensions if emit is None else None
        self._started = False
        self._told = False
        self._live = LiveBlocks(state.services.redaction)
        self._partial = PartialMessage(
            api=self.model.api, provider=self.model.provider, model=self.model.id, timestamp=unix_ms(state.services.clock.now())
        )

    async def run(self, provider: Provider, request: ModelRequest, stop: Interruption) -> CallReply:
        """Ask. A stop ends the call at once; what had arrived is then a message that was ``aborted``."""
        stream: AsyncGenerator[StreamEvent, None] | None = None
        try:
            with stop.cut_here():
                stream = provider.stream(self.model, request)
                reply = await self._follow(stream)
        except RunStopped:
            reply = self.cut_short("aborted")
        except Exception as error:
            error_id = self._ids()
            log.exception("provider raised", extra={"facts": {"provider": self.model.provider, "error_id": error_id}})
            reply = self.failed("unknown", f"the provider broke off with {type(error).__name__} (error {error_id})")
        finally:
            if stream is not None:
                await self._close(stream, stop)
        self._show_start()
        self._tell_start()
        for event in self._live.close():
            self._update(event)
        if reply.failure is not None and stop.requested:
            return CallReply(msgspec.structs.replace(reply.message, stop_reason="aborted", error_message=None))
        return reply

    def failed(self, kind: FailureKind, text: str) -> CallReply:
        """The reply when the call failed here, with what had arrived."""
        return self.cut_short("error", text, CallFailure(kind))

    def cut_short(
        self, stop_reason: Literal["aborted", "error"], error_message: str | None = None, failure: CallFailure | None = None
    ) -> CallReply:
        self._show_start()
        self._tell_start()
        return CallReply(self._partial.finish(stop_reason, error_message=error_message), failure)

    def unsent(self) -> AssistantMessage:
        """What there is of an answer when not even a request was made."""
        return self._partial.finish("error")

    async def _follow(self, stream: AsyncGenerator[StreamEvent, None]) -> CallReply:
        async for event in stream:
            if isinstance(event, StreamStarted):
                self._partial = event.partial
                self._show_start()
            elif isinstance(event, StreamDone):
                return CallReply(event.message)
            elif isinstance(event, StreamFailed):
                message = msgspec.structs.replace(event.message, stop_reason="error")
                return CallReply(message, CallFailure(event.kind, event.retry_after_s))
            else:
                for shown in self._live.show(event):
                    self._update(shown)
        return self.failed("network", "the answer broke off before its end")

    def _show_start(self) -> None:
        if not self._started:
            self._started = True
            self._emit(MessageStart(role="assistant"))

    def _tell_start(self) -> None:
        """Tell extensions that there is an answer: not when it was asked for, but when something of it has come."""
        if not self._told and self._extensions is not None:
            self._told = True
            self._extensions.update(MessageStarted("assistant"))

    def _update(self, event: BlockEvent) -> None:
        self._tell_start()
        self._emit(MessageUpdate(assistant_message_event=event))
        if self._extensions is not None and isinstance(event, TextDelta):
            self._extensions.update(MessageUpdated(event.delta))

    async def _close(self, stream: AsyncGenerator[StreamEvent, None], stop: Interruption) -> None:
        """Let the provider end its request; in this task, because its cleanup belongs to the task that streamed."""
        try:
            await stream.aclose()
        except asyncio.CancelledError:
            stop.requested = True
        except Exception:
            log.exception("provider did not close its stream", extra={"facts": {"provider": self.model.provider}})
