"""A conversation as its host holds it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from features.agent.aftermath import Aftermath
from features.agent.extension_port import ExtensionPort
from features.agent.interruption import Interruption, RunStopped
from features.agent.lone_host import LoneHost
from features.agent.loop import AgentRun
from features.agent.opening import tell_model
from features.agent.session_compaction import SessionCompaction
from features.agent.session_moves import SessionMoves
from features.agent.session_state import SessionState
from features.agent.transcript import NewMessage
from features.contracts.agent import Heard, Prompt, RunOutcome, SessionHost
from features.contracts.errors import PumiceError, SessionBusyError, UserMustAct
from features.contracts.events import CompactionResult, MessageEnd, MessageStart, SessionEvent
from features.contracts.extension_events import (
    BeforeModelSelection,
    InputReceived,
    MessageEnding,
    MessageStarted,
    SessionForked,
    SessionShutdown,
)
from features.contracts.messages import AssistantMessage, CustomMessage, ToolResultMessage, Usage, UserMessage
from features.contracts.models import Model, ThinkingLevel
from features.contracts.sessions import SessionEntry
from features.extensions import ExtensionRunner
from features.sessions import SessionManager

__all__ = ["AgentSession"]

log = logging.getLogger("pumice.agent")


class AgentSession:
    """One session and at most one run of it. Made by ``AgentSessionFactory``.

    ``notices`` are what a person should hear about how it was opened, such as a model that is no longer there.
    """

    def __init__(self, state: SessionState, *, port: ExtensionPort, host: SessionHost | None = None, notices: Sequence[str] = ()) -> None:
        self.notices = tuple(notices)
        self._state = state
        self._port = port
        self._alone = LoneHost(self._start_alone)
        self._host: SessionHost = self._alone if host is None else host
        port.bind(self, self._host)
        self._aftermath = Aftermath(state, self._host, say=self.say)
        self._run: AgentRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._compaction = SessionCompaction(state)
        self.moves = SessionMoves(
            state, tell=lambda event: state.extensions.dispatch(event), stop=self.abort, summarise=self.summarise_branch
        )
        self._compacting: tuple[asyncio.Task[CompactionResult], Interruption] | None = None
        self._stops = 0
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
    def compacting(self) -> bool:
        """Whether the session is being summed up between two runs; one that begins meanwhile waits for the end of it."""
        return self._compacting is not None

    @property
    def unfinished(self) -> bool:
        """Whether the conversation ends in something that the model has not answered."""
        return self._is_unfinished(failed_too=False)

    @property
    def brought_models(self) -> Sequence[Model]:
        """The models that its extensions bring."""
        return self._port.brought_models

    @property
    def queued(self) -> tuple[Prompt, ...]:
        """What waits for a run: steering first, then follow-ups."""
        return (*self._state.queues.steering, *self._state.queues.follow_ups)

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> Callable[[], None]:
        """Hear every event from now on; gives what ends it. A listener is called on the loop and must be quick.

        Whoever comes first hears what went wrong with extensions while the session was opened.
        """
        remove = self._state.listeners.add(listener)
        for error in self._port.early_errors():
            self._state.listeners.emit(error)
        return remove

    async def prompt(self, prompt: Prompt, *, when_busy: Literal["steer", "follow_up"] | None = None) -> RunOutcome | None:
        """Say something. Starts a run and gives its outcome once it has settled; cancelling this call stops the run.

        Args:
            when_busy: how to queue while a run is going on; the answer is then None at once, and the message belongs to that run.

        Returns:
            None also when the session was told to stop before the run could begin.

        Raises:
            SessionBusyError: a run is going on and ``when_busy`` is None, or the queue is full.
        """
        heard = await self.hear(prompt)
        if heard.handled:
            return _swallowed(heard)
        prompt = heard.prompt
        if not await self._free():
            return None
        if self._run is None:
            if prompt.source != "extension":
                self._state.extensions.follow_ups.somebody_spoke()
            return await self._outcome(self._begin([prompt], source_ids=(), owner=prompt.owner))
        if when_busy is None:
            raise SessionBusyError("a run is going on in this session; say whether the message steers it or follows it")
        self._state.queues.put(prompt, when_busy)
        return None

    async def hear(self, prompt: Prompt) -> Heard:
        """Let the extensions change a prompt or swallow it, once; ``prompt`` does this by itself for one that was not heard."""
        if prompt.heard or not self.extensions.wants(InputReceived):
            return Heard(prompt=prompt)
        event = await self.extensions.dispatch(InputReceived(prompt.text, prompt.images, prompt.source))
        heard = msgspec.structs.replace(prompt, text=event.text, images=tuple(event.images), heard=True)
        return Heard(prompt=heard, handled=event.handled, reply=event.reply)

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
        if not await self._free():
            return None
        if self._run is not None:
            raise SessionBusyError("a run is going on in this session; there is nothing to resume")
        if not self._is_unfinished(failed_too=bool(source_ids)):
            return None
        return await self._outcome(self._begin([], source_ids=source_ids, owner=owner))

    def take_queued(self) -> tuple[Prompt, ...]:
        return self._state.queues.take_all()

    async def abort(self) -> bool:
        """Stop what goes on, and what waits for it to begin; False when that is nothing."""
        self._stops += 1
        self._compaction.requested = None
        run, compacting = self._run, self._compacting
        if compacting is not None:
            task, stop = compacting
            stop.request()
            await asyncio.wait([task])
        if run is not None:
            run.stop.request()
            await asyncio.shield(run.outcome)
        return run is not None or compacting is not None

    async def compact(self, instructions: str = "") -> CompactionResult | None:
        """Let notes take the place of the older part of the conversation.

        While a run goes on it is only noted, and the answer is None: it is done before the run's next model call, or when that has ended.

        Args:
            instructions: what the notes are to look at above all.

        Raises:
            UserMustAct: there is nothing to sum up, or it is going on, or somebody forbade it, or stopped it.
            PumiceError: there are no notes to be had; nothing has changed.
        """
        if self._run is not None:
            self._compaction.requested = instructions
            return None
        if self._compacting is not None:
            raise UserMustAct("I am summing up already.")
        task, stop = self._start_compacting(instructions)
        try:
            return await asyncio.shield(task)
        except RunStopped:
            raise UserMustAct("Stopped before there was a summary; everything is as it was.") from None
        except asyncio.CancelledError:
            stop.request()
            await asyncio.wait([task])
            raise

    async def summarise_branch(self, entries: Sequence[SessionEntry], instructions: str = "") -> tuple[str, Any] | None:
        """Notes on entries that the conversation is about to leave, oldest first: text and details of a branch summary.

        None where nothing was said on them. Cancelling this call stops it. No run may be going on.

        Raises:
            PumiceError: there are no notes to be had.
        """
        return await self._compaction.summarise_branch(
            entries, self._state.services.choice.first(self.model), Interruption(), instructions=instructions
        )

    async def set_model(self, reference: str) -> None:
        """Use another model from the next model call on, also after a restart.

        Raises:
            UserMustAct: there is no such model, or an extension does not allow it.
        """
        model = self._state.services.models.resolve(reference)
        if self.extensions.wants(BeforeModelSelection):
            asked = await self.extensions.dispatch(BeforeModelSelection(model))
            if asked.refusal is not None:
                raise UserMustAct(f"The model stays {self.model.reference}: {asked.refusal}")
        changed = model != self.model
        await self._state.transcript.set_model(model)
        self._state.model = model
        if changed:
            await tell_model(self._state, "set")

    async def set_thinking(self, level: ThinkingLevel) -> None:
        changed = level != self.thinking
        await self._state.transcript.set_thinking(level)
        self._state.thinking = level
        if changed:
            await tell_model(self._state, "set")

    async def move_to(self, entry_id: str | None, *, summarise: bool = False, instructions: str = "", label: str | None = None) -> None:
        """Go on from another entry; see ``SessionMoves``."""
        await self.moves.move_to(entry_id, summarise=summarise, instructions=instructions, label=label)

    async def undo(self) -> str:
        """Take back what a person said last and what came of it; gives that text.

        Raises:
            UserMustAct: there is nothing to take back, or an extension does not allow it.
        """
        return await self.moves.undo()

    async def retry(self, *, owner: bool = False) -> RunOutcome | None:
        """Answer anew what a person said last; the answer that was given stays in the tree.

        Raises:
            UserMustAct: there is nothing to answer again, or an extension does not allow it.
        """
        await self.moves.rewind()
        return await self.resume(owner=owner)

    async def fork(self, entry_id: str | None = None) -> str:
        """Make a session of its own out of the branch up to an entry, None for all of it; gives its id.

        Raises:
            KeyError: there is no such entry.
            UserMustAct: there is nothing to fork, or an extension does not allow it.
        """
        made = await self.moves.fork(entry_id)
        await self.extensions.dispatch(SessionForked(self.id))
        return made

    async def label(self, entry_id: str, name: str) -> None:
        """Name an entry; an empty name takes it away.

        Raises:
            KeyError: there is no such entry.
        """
        await self._state.transcript.set_label(entry_id, name)

    async def set_name(self, name: str) -> None:
        await self._state.transcript.set_name(name)

    def context_tokens(self) -> int:
        """Tokens of the present context: the last figure a service gave, plus a quarter of the characters after it."""
        return self._compaction.tokens()

    async def close(self, reason: Literal["quit", "evict", "switch", "delete", "reload"] = "quit") -> None:
        """Stop what is going on and take no more prompts; may be called twice."""
        already, self._closed = self._closed, True
        await self.abort()
        await self._aftermath.over()
        await self._alone.close()
        if not already:
            await self.extensions.dispatch(SessionShutdown(reason))
        await self.extensions.close()
        self._state.listeners.clear()

    # For its extensions, and about them

    @property
    def extensions(self) -> ExtensionRunner:
        return self._state.extensions

    @property
    def owner_asked(self) -> bool:
        """Whether an owner asked for the run that goes on, or for the one whose end is being told."""
        return self._run.owner if self._run is not None else self._aftermath.owner

    async def looked_at(self, message: CustomMessage) -> CustomMessage:
        """A message that is to be stored outside of a run, as its extensions leave it."""
        if self.extensions.wants(MessageStarted):
            await self.extensions.dispatch(MessageStarted("custom"))
        if not self.extensions.wants(MessageEnding):
            return message
        changed = (await self.extensions.dispatch(MessageEnding(message))).message
        assert isinstance(changed, CustomMessage)
        return self._state.services.redaction.message(changed)

    async def say(self, message: CustomMessage) -> None:
        """Put a message of an extension into the conversation while no run goes on."""
        [entry_id] = await self._state.transcript.append("", [NewMessage(message)])
        self._state.listeners.emit(MessageStart(role="custom", message=message))
        self._state.listeners.emit(MessageEnd(message=message, entry_id=entry_id))

    def follow_up_waits(self) -> None:
        """Begin with what an extension queued, unless a run will come to it."""
        if self._run is None and not self._closed:
            self._aftermath.follow_up_waits()

    def request_stop(self) -> None:
        """Stop the run without waiting for its end."""
        if self._run is not None:
            self._run.stop.request()

    async def _start_alone(self, prompt: Prompt) -> None:
        """A prompt of an extension in a session without a host."""
        while not self._closed:
            try:
                await (self.resume(owner=prompt.owner) if prompt.empty else self.prompt(prompt))
            except SessionBusyError:
                if self._run is not None:
                    await asyncio.wait([self._run.outcome])
            else:
                return

    # Runs

    def _begin(self, prompts: Sequence[Prompt], *, source_ids: tuple[str, ...], owner: bool) -> AgentRun:
        """Admit a run. No await between the caller's look at ``_run`` and here, so that two prompts never both get in."""
        if self._closed:
            raise RuntimeError(f"session {self.id} is closed")
        if self.moves.going_on:
            raise SessionBusyError("the conversation is on its way to another place of its tree; say it again in a moment")
        run = AgentRun(self._state, self._compaction, prompts, source_ids=source_ids, owner=owner, released=self._release)
        self._run = run
        self._task = run.start()
        return run

    def _release(self, outcome: Literal["success", "error", "aborted"]) -> None:
        owner = self._run.owner if self._run is not None else False
        self._run = None
        self._task = None
        self._aftermath.begin(outcome, owner=owner)
        if self._compaction.requested is not None and not self._closed:
            self._start_compacting(self._compaction.requested)

    def _start_compacting(self, instructions: str) -> "tuple[asyncio.Task[CompactionResult], Interruption]":
        """Between two runs; its task is kept here, and whoever asked hears of its end by the event."""
        if self._closed:
            raise RuntimeError(f"session {self.id} is closed")
        stop = Interruption()

        async def compact() -> CompactionResult:
            stop.bind(asyncio.current_task())
            try:
                return await self._compaction.run("manual", self._state.services.choice.first(self.model), stop, instructions=instructions)
            finally:
                self._compacting = None

        task = asyncio.create_task(compact(), name=f"compact {self.id}")
        task.add_done_callback(_looked_at)
        self._compacting = (task, stop)
        return self._compacting

    async def _free(self) -> bool:
        """Wait until the session is not being summed up and the last run is over; False when it was told to stop meanwhile."""
        stops = self._stops
        while self._compacting is not None or self._aftermath.going_on:
            if self._compacting is not None:
                await asyncio.wait([self._compacting[0]])
            await self._aftermath.over()
        return stops == self._stops

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


def _swallowed(heard: Heard) -> RunOutcome:
    """An extension has dealt with a prompt; there was no run."""
    return RunOutcome(run_id="", outcome="success", text=heard.reply or "", source_ids=heard.prompt.source_ids, usage=Usage())


def _looked_at(task: "asyncio.Task[CompactionResult]") -> None:
    """An end that nobody waits for was told by its event and is in the log; only a defect is not."""
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, PumiceError | RunStopped):
        log.error("compaction broke", exc_info=error)
