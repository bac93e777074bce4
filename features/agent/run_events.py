"""What the extensions are told and asked in the course of one run."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, cast

import msgspec

from features.agent.interruption import Interruption
from features.agent.provider_hooks import provider_hooks
from features.agent.session_state import SessionState
from features.contracts.agent import Prompt, RunFailure
from features.contracts.extension_events import (
    AgentEnded,
    AgentStarted,
    BeforeAgentStart,
    BeforeProviderRequest,
    ContextBuilding,
    ExtensionEvent,
    MessageEnding,
    MessageStarted,
    RunFailed,
    TurnEnded,
    TurnStarted,
)
from features.contracts.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage, message_text
from features.contracts.models import Model, ModelRequest

__all__ = ["RunEvents"]

E = TypeVar("E", bound=ExtensionEvent)
M = TypeVar("M", UserMessage, AssistantMessage, ToolResultMessage, CustomMessage)


class RunEvents:
    """Makes an event only where somebody wants it.

    What has happened is told to its end also when the run is stopped meanwhile, at most as long as deadlines allow; what is about to happen
    is cut.
    """

    def __init__(self, state: SessionState, stop: Interruption) -> None:
        self._state = state
        self._extensions = state.extensions
        self._stop = stop

    async def before_start(self, prompts: Sequence[Prompt], system_prompt: str) -> BeforeAgentStart:
        """
        Raises:
            RunStopped: when told to stop.
        """
        text = "\n\n".join(prompt.text if prompt.custom is None else message_text(prompt.custom) for prompt in prompts)
        images = tuple(image for prompt in prompts for image in prompt.images)
        with self._stop.cut_here():
            return await self._extensions.dispatch(BeforeAgentStart(text, images, system_prompt))

    async def started(self) -> None:
        if self._extensions.wants(AgentStarted):
            await self._tell(AgentStarted())

    async def turn_started(self, index: int) -> None:
        if self._extensions.wants(TurnStarted):
            await self._tell(TurnStarted(index))

    async def turn_ended(self, index: int, message: AssistantMessage, results: Sequence[ToolResultMessage]) -> bool:
        """Whether the run is to end here."""
        if not self._extensions.wants(TurnEnded):
            return False
        return (await self._tell(TurnEnded(index, message, results))).stop_after

    async def ended(self, messages: Sequence[Message], outcome: Literal["success", "error", "aborted"], failure: RunFailure | None) -> None:
        if self._extensions.wants(AgentEnded):
            await self._tell(AgentEnded(messages, outcome))
        if failure is not None and self._extensions.wants(RunFailed):
            await self._tell(RunFailed(failure.kind, failure.message))

    async def message_started(self, role: str) -> None:
        if self._extensions.wants(MessageStarted):
            await self._tell(MessageStarted(role))

    async def ending(self, message: M) -> M:
        """A message as it is to be stored. It is without secrets before anybody sees it, and again after."""
        message = self._state.services.redaction.message(message)
        if not self._extensions.wants(MessageEnding):
            return message
        changed: Any = (await self._tell(MessageEnding(message))).message
        return message if changed is message else cast("M", self._state.services.redaction.message(changed))

    async def updates_told(self) -> None:
        """Wait until the pieces of what has grown are handed out."""
        await self._stop.whole(self._extensions.updates.flush())

    def context(self) -> list[Message]:
        """The messages of the next request: the conversation, with what extensions keep in it before the newest word of a person."""
        messages = self._state.transcript.manager.messages
        kept = self._extensions.context_messages()
        if not kept:
            return messages
        newest = next((index for index in range(len(messages) - 1, -1, -1) if isinstance(messages[index], UserMessage)), len(messages))
        return [*messages[:newest], *kept, *messages[newest:]]

    async def request(self, model: Model, request: ModelRequest) -> ModelRequest:
        """The request as it is to be made.

        Raises:
            RunStopped: when told to stop.
        """
        extensions = self._extensions
        with self._stop.cut_here():
            if extensions.wants(ContextBuilding):
                built = await extensions.dispatch(ContextBuilding(list(request.messages)))
                request = msgspec.structs.replace(request, messages=built.messages)
            if extensions.wants(BeforeProviderRequest):
                request = (await extensions.dispatch(BeforeProviderRequest(model, request))).request
        hooks = provider_hooks(extensions)
        return request if hooks is None else msgspec.structs.replace(request, hooks=hooks)

    async def _tell(self, event: E) -> E:
        return await self._stop.whole(self._extensions.dispatch(event))
