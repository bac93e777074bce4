"""A conversation as its host holds it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from features.agent.context_size import context_tokens
from features.agent.loop import AgentRun
from features.agent.session_state import SessionState
from features.contracts.agent import Prompt, RunOutcome
from features.contracts.errors import SessionBusyError
from features.contracts.events import SessionEvent
from features.contracts.messages import AssistantMessage, CustomMessage, ToolResultMessage, UserMessage
from features.contracts.models import Model, ThinkingLevel
from features.sessions import SessionManager

__all__ = ["AgentSession"]


class AgentSession:
    """One session and at most one run of it. Made by ``AgentSessionFactory``.

    ``notices`` are what a person should hear about how it was opened, such as a model that is no longer there.
    """

    def __init__(self, state: SessionState, *, notices: Sequence[str] = ()) -> None:
        self.notices = tuple(notices)
        self._state = state
        self._run: AgentRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def id(self) -> str:
        return self.manager.id

    @property
    def name(self) -> str:
        return self.manager.name

    @property
    def manager(self) -> SessionManager:
        return self._state.transcript.manager

    @property
    def model(self) -> Model:
        return self._state.model

    @property
    def thinking(self) -> ThinkingLevel:
        return self._state.thinking

    @property
    def running(self) -> bool:
        return self._run is not None

    @property
    def queued(self) -> tuple[Prompt, ...]:
        """What waits for a run: steering first, then follow-ups."""
        return (*self._state.queues.steering, *self._state.queues.follow_ups)

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> Callable[[], None]:
        """Hear every event from now on; gives what ends it. A listener is called on the loop and must be quick."""
        return self._state.listeners.add(listener)

    async def prompt(self, prompt: Prompt, *, when_busy: Literal["steer", "follow_up"] | None = None) -> RunOutcome | None:
        """Say something. Starts a run and gives its outcome once it has settled; cancelling this call stops the run.

        Args:
            when_busy: how to queue while a run is going on; the answer is then None at once, and the message belongs to that run.

        Raises:
            SessionBusyError: a run is going on and ``when_busy`` is None, or the queue is full.
        """
        if self._run is None:
            return await self._outcome(self._begin([prompt], source_ids=(), owner=prompt.owner))
        if when_busy is None:
            raise SessionBusyError("a run is going on in this session; say whether the message steers it or follows it")
        self._state.queues.put(prompt, when_busy)
        return None

    async def resume(self, source_ids: tuple[str, ...] = (), *, owner: bool = False) -> RunOutcome | None:
        """Go on after a crash: calls without a result are closed, then the model is asked without a new prompt.

        Args:
            source_ids: the messages that the host knows to be taken in and not answered; they come back in the outcome. With them a branch
                that ends in a failed attempt goes on too.
            owner: whether an owner said them.

        Returns:
            None when the branch ends in an answer, or in a run that was stopped: there is nothing to do.

        Raises:
            SessionBusyError: a run is going on.
        """
        if self._run is not None:
            raise SessionBusyError("a run is going on in this session; there is nothing to resume")
        if not self._is_unfinished(failed_too=bool(source_ids)):
            return None
        return await self._outcome(self._begin([], source_ids=source_ids, owner=owner))

    def take_queued(self) -> tuple[Prompt, ...]:
        return self._state.queues.take_all()

    async def abort(self) -> bool:
        run = self._run
        if run is None:
            return False
        run.stop.request()
        await asyncio.shield(run.outcome)
        return True

    async def set_model(self, reference: str) -> None:
        """Use another model from the next model call on, also after a restart.

        Raises:
            UserMustAct: there is no such model.
        """
        model = self._state.services.models.resolve(reference)
        await self._state.transcript.set_model(model)
        self._state.model = model

    async def set_thinking(self, level: ThinkingLevel) -> None:
        await self._state.transcript.set_thinking(level)
        self._state.thinking = level

    async def set_name(self, name: str) -> None:
        await self._state.transcript.set_name(name)

    def context_tokens(self) -> int:
        """Tokens of the present context: the last figure a service gave, plus a quarter of the characters after it."""
        return context_tokens(self.manager.messages)

    async def close(self) -> None:
        """Stop what is going on and take no more prompts; may be called twice."""
        self._closed = True
        await self.abort()
        self._state.listeners.clear()

    def _begin(self, prompts: Sequence[Prompt], *, source_ids: tuple[str, ...], owner: bool) -> AgentRun:
        """Admit a run. No await between the caller's look at ``_run`` and here, so that two prompts never both get in."""
        if self._closed:
            raise RuntimeError(f"session {self.id} is closed")
        run = AgentRun(self._state, prompts, source_ids=source_ids, owner=owner, released=self._release)
        self._run = run
        self._task = run.start()
        return run

    def _release(self) -> None:
        self._run = None
        self._task = None

    async def _outcome(self, run: AgentRun) -> RunOutcome:
        try:
            return await asyncio.shield(run.outcome)
        except asyncio.CancelledError:
            run.stop.request()
            await asyncio.wait((run.outcome,))
            raise

    def _is_unfinished(self, *, failed_too: bool) -> bool:
        messages = self.manager.messages
        if not messages:
            return False
        last = messages[-1]
        if isinstance(last, AssistantMessage):
            return bool(self._state.transcript.unanswered_calls()) or (failed_too and last.stop_reason == "error")
        return isinstance(last, UserMessage | ToolResultMessage | CustomMessage)
