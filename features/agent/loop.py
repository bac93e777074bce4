"""The loop: what one run does, from a prompt until nothing is left to do.

::

    before_agent_start, agent_start
    turn   turn_start
           the prompt is stored
           what people said meanwhile (steering) is stored
           the context is compacted where it comes near the model's limit, or where somebody asked for it
           extensions may change the context and the request
           the model is asked, its answer is stored     a passing failure: wait, and ask again; then ask a fallback model
                                                        too long for the model: compact once, and ask again
           tools run, their results are stored in the order of the calls
           turn_end
    again  no extension ends it here, and: tools ran, or someone steers, or the answer was empty (once), or a follow-up waits
    agent_end
    agent_settled

A run never raises. It is stopped by its ``stop``: the model call, the tools or the wait are cut, what had arrived is stored as it is, and
the branch ends with a message that says so, which keeps a stopped run from being taken up again after a restart.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from features.agent.call_recovery import CallRecovery
from features.agent.interruption import Interruption, RunStopped
from features.agent.message_maker import MessageMaker
from features.agent.model_call import CallReply, ModelCall
from features.agent.retries import Retries
from features.agent.run_events import RunEvents
from features.agent.session_compaction import SessionCompaction
from features.agent.session_state import SessionState
from features.agent.tool_batch import ToolBatch
from features.agent.transcript import NewMessage
from features.agent.usage_sum import add_usage
from features.contracts.agent import Prompt, RunFailure, RunOutcome
from features.contracts.errors import PumiceError
from features.contracts.events import (
    AgentEnd,
    AgentSettled,
    AgentStart,
    MessageEnd,
    MessageStart,
    RetryEnd,
    RetryStart,
    TurnEnd,
    TurnStart,
)
from features.contracts.extension_events import BeforeAgentStart
from features.contracts.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    message_text,
)
from features.contracts.models import ModelRequest
from features.contracts.tools import Tool
from features.system_prompt import SystemPromptFacts

__all__ = ["AgentRun"]

log = logging.getLogger("pumice.agent")

_ROLES: Mapping[type, str] = {UserMessage: "user", ToolResultMessage: "toolResult", CustomMessage: "custom"}
_UNFINISHED = ("error", "aborted")


class AgentRun:
    """One run of a session.

    Args:
        compaction: of the same session.
        prompts: what it starts with; none when it goes on where the branch ends.
        source_ids: messages it answers for though their prompt is stored already.
        owner: whether an owner of the host said what it works on.
        released: called with the result when the session is free again, before ``agent_settled``.
    """

    def __init__(
        self,
        state: SessionState,
        compaction: SessionCompaction,
        prompts: Sequence[Prompt],
        *,
        source_ids: tuple[str, ...],
        owner: bool,
        released: Callable[[Literal["success", "error", "aborted"]], None],
    ) -> None:
        self.id = state.services.ids()
        self.stop = Interruption()
        self.outcome: asyncio.Future[RunOutcome] = asyncio.get_running_loop().create_future()
        self._state = state
        self._recovery = CallRecovery(state, compaction, self.stop)
        self._prompts = prompts
        self._released = released
        self._emit = state.listeners.emit
        self._make = MessageMaker(state.services.clock, state.services.redaction)
        self._retries = Retries(state.services.retry, state.services.random)
        self.owner = owner
        self._tell = RunEvents(state, self.stop)
        self._system_prompt: str | None = None
        self._joining: list[CustomMessage] = []
        self._offered: Mapping[str, Tool] = {}
        self._turns_taken = 0
        self._tools_used = False
        self._nudged = False
        self._result: Literal["success", "error", "aborted"] = "success"
        self._failure: RunFailure | None = None
        self._texts: list[str] = []
        self._source_ids = list(source_ids)
        self._usage = Usage()
        self._added: list[Message] = []

    def start(self) -> asyncio.Task[None]:
        """Begin; the caller keeps the task."""
        self._emit(AgentStart())
        task = asyncio.create_task(self._run(), name=f"run {self.id}")
        # A task that is cancelled before its first step never gets to settle by itself.
        task.add_done_callback(lambda _: self._settle("aborted"))
        return task

    async def _run(self) -> None:
        self.stop.bind(asyncio.current_task())
        try:
            await self._take_turns()
        except asyncio.CancelledError:
            self._result = "aborted"
        except PumiceError as error:  # The store says that an entry could not be kept.
            self._fail(RunFailure(kind="storage", message=self._state.services.redaction.text(str(error))))
            log.error("run ended because it could not be stored", extra={"facts": {"run": self.id, "error": type(error).__name__}})
        except Exception:
            error_id = self._state.services.ids()
            self._fail(RunFailure(kind="unknown", message=f"something went wrong inside the host (error {error_id})"))
            log.exception("run failed", extra={"facts": {"run": self.id, "error_id": error_id}})
        await self._tell.ended(self._added, self._result, self._failure)
        self._settle(self._result)

    async def _take_turns(self) -> None:
        queues = self._state.queues
        prompts, nudge = self._prompts, False
        await self._prepare()
        for index in count():
            answer, calls, stop_after = await self._turn(index, prompts, nudge=nudge)
            prompts, nudge = (), False
            if calls and not stop_after:
                self._turns_taken += 1
                continue
            if text := message_text(answer).strip():
                self._texts.append(text)
            if stop_after or answer.stop_reason in _UNFINISHED or self.stop.requested:
                return
            if queues.steering:
                continue
            nudge = not text and self._tools_used and not self._nudged
            if nudge:
                self._nudged = True
                continue
            prompts = queues.take_follow_ups()
            if not prompts:
                return

    async def _prepare(self) -> None:
        """Let extensions prepare the run, before anything of it is stored."""
        if self._state.extensions.wants(BeforeAgentStart):
            try:
                with self.stop.cut_here():
                    built = await self._build_system_prompt()
                asked = await self._tell.before_start(self._prompts, built)
            except RunStopped:
                pass  # the first turn stores that the run was stopped
            else:
                self._system_prompt = asked.system_prompt
                self._joining = [self._make.custom(kind, text, display=display) for kind, text, display in asked.added]
        await self._tell.started()

    async def _turn(self, index: int, prompts: Sequence[Prompt], *, nudge: bool) -> tuple[AssistantMessage, list[ToolCall], bool]:
        """One answer of the model and the tools it calls.

        Returns:
            the answer as it was stored, the calls that were dealt with, and whether an extension ends the run here.
        """
        self._emit(TurnStart(turn_index=index))
        await self._tell.turn_started(index)
        answer: AssistantMessage | None = None
        before = len(self._added)
        try:
            if index == 0:
                await self._close_lost_calls()
            if prompts or self._joining:
                await self._store_prompts(prompts, "follow_up" if index else None)
            if nudge:
                await self._store([NewMessage(self._make.nudge())])
            reply, answer = await self._answer()
            calls = [] if answer.stop_reason in _UNFINISHED else self._calls(reply, answer)
            if calls:
                await self._run_tools(calls, cut_off=answer.stop_reason == "length")
        finally:
            results = [message for message in self._added[before:] if isinstance(message, ToolResultMessage)]
            shown = self._no_answer() if answer is None else answer
            self._emit(TurnEnd(turn_index=index, message=shown, tool_results=results))
            stop_after = await self._tell.turn_ended(index, shown, results)
        return answer, calls, stop_after

    def _calls(self, reply: CallReply, answer: AssistantMessage) -> list[ToolCall]:
        """The calls of an answer as it was stored; one that nobody has changed is run as the model wrote it, secrets included."""
        redaction = self._state.services.redaction
        written = {block.id: block for block in reply.message.content if isinstance(block, ToolCall)}
        calls = [block for block in answer.content if isinstance(block, ToolCall)]
        return [written[call.id] if call.id in written and redaction.call(written[call.id]) == call else call for call in calls]

    async def _answer(self) -> tuple[CallReply, AssistantMessage]:
        """Ask until there is an answer or asking is no use; gives the last reply as the model wrote it and as it was stored."""
        attempt, tried = 0, set[str]()
        while True:
            attempt += 1
            if not self.stop.requested:
                await self._take_steering()
            call = ModelCall(self._state, await self.stop.whole(self._recovery.choose_model()))
            reply = await self._ask(call)
            delay = None if reply.failure is None else self._retries.delay(reply.failure, attempt)
            answer = await self._store_answer(call, reply)
            if delay is None:
                self._end_retries(answer, repeated=attempt - 1)
                if reply.failure is not None and await self._recovery.after(call.model, reply.failure, tried):
                    attempt = 0
                    continue
                self._note_end(reply, answer)
                return reply, answer
            error = answer.error_message or ""
            limit = self._retries.options.max_attempts
            self._emit(RetryStart(attempt=attempt, max_attempts=limit, delay_ms=round(delay * 1000), error_message=error))
            # A stop cuts the wait; the next round then stores that the run was stopped.
            with suppress(RunStopped), self.stop.cut_here():
                await self._state.services.clock.sleep(delay)

    async def _ask(self, call: ModelCall) -> CallReply:
        """One model call; whatever stands in its way becomes its reply."""
        state = self._state
        limit = state.services.max_turns
        if self._turns_taken >= limit and not self.stop.requested:
            return call.failed("turn_limit", f"stopped after {limit} steps without coming to an answer; write if it should go on")
        try:
            with self.stop.cut_here():
                refusal = None if state.spending is None else await state.spending.refusal()
                if refusal is not None:
                    return call.failed("budget", refusal)
                if self._system_prompt is None:
                    self._system_prompt = await self._build_system_prompt()
            # The tools travel with the request: what is registered later is not offered by it.
            self._offered = {tool.spec.name: tool for tool in state.extensions.tools.active}
            tools = [tool.spec for tool in self._offered.values()]
            system_prompt = "\n\n".join((self._system_prompt, *state.extensions.prompt_sections()))
            kept = "".join(message_text(message) for message in state.extensions.context_messages())
            state.overhead = state.services.compactor.overhead(system_prompt + kept, tools)
            await self._recovery.make_room(call.model)
            provider = state.services.models.provider(call.model.provider)
            request = await self._tell.request(
                call.model,
                ModelRequest(
                    system_prompt=system_prompt,
                    messages=self._tell.context(),
                    tools=tools,
                    thinking=state.thinking if call.model.reasoning else "off",
                    session_id=state.transcript.manager.id,
                    time_zone=state.tool_context.time_zone,
                ),
            )
        except RunStopped:
            return call.cut_short("aborted")
        except PumiceError as error:
            return call.failed("invalid", str(error))
        state.system_prompt = request.system_prompt
        self._offered = {tool.name: self._offered[tool.name] for tool in request.tools}
        reply = await call.run(provider, request, self.stop)
        if reply.failure is None and state.services.compactor.is_hidden_overflow(reply.message, call.model):
            return call.failed("overflow", "the request filled the model's window, so that there was no room for an answer")
        return reply

    async def _build_system_prompt(self) -> str:
        """Once per run; what a hook makes of it holds for this run alone."""
        state = self._state
        zone = state.tool_context.time_zone
        shelf = await state.skills.look() if state.skills is not None else None
        return await state.services.prompts.build(
            SystemPromptFacts(
                workspace=state.tool_context.workspace,
                tools=state.extensions.tools.active,
                date=state.services.clock.now().astimezone(ZoneInfo(zone)).date(),
                time_zone=zone,
                chat=state.chat,
                skills=shelf.prompt_section({tool.spec.name for tool in state.tools.tools}) if shelf is not None else "",
                host_instructions=state.host_instructions,
                host_memory=state.host_memory,
            )
        )

    async def _run_tools(self, calls: Sequence[ToolCall], *, cut_off: bool) -> None:
        self._tools_used = True
        context = msgspec.structs.replace(self._state.tool_context, owner=self.owner)

        async def save(results: Sequence[ToolResultMessage]) -> None:
            await self._store([NewMessage(result) for result in results])

        await ToolBatch(self._state, calls, offered=self._offered, cut_off=cut_off, context=context, stop=self.stop, save=save).run()

    async def _take_steering(self) -> None:
        if prompts := self._state.queues.take_steering():
            await self._store_prompts(prompts, "steer")

    async def _store_prompts(self, prompts: Sequence[Prompt], queue: Literal["steer", "follow_up"] | None) -> None:
        """Put prompts into the conversation; ``queue`` says where they waited, so that they wait again if they cannot be stored."""
        waited = () if queue is not None else tuple(self._state.queues.next_turn)
        joining = [NewMessage(message) for message in (*(prompt.custom for prompt in waited), *self._joining) if message is not None]
        try:
            messages = [self._make.said(prompt, await self._expanded(prompt)) for prompt in prompts]
            said = [NewMessage(message, prompt.source_ids) for message, prompt in zip(messages, prompts, strict=True)]
            await self._store([*said, *joining])
        except Exception:
            if queue is not None:
                self._state.queues.put_back(prompts, queue)
            raise
        for _ in waited:
            self._state.queues.next_turn.popleft()
        self._joining = []
        for prompt in prompts:
            self._source_ids.extend(prompt.source_ids)
        if all(prompt.source == "extension" for prompt in prompts):
            return  # nobody has said anything new
        owners = all(prompt.owner for prompt in prompts)
        # Work goes on for whoever began it, so a stranger's word takes an owner's rights away and an owner's does not lend any.
        self.owner = owners and self.owner if queue == "steer" else owners
        self._tools_used = self._tools_used and queue == "steer"
        self._turns_taken = 0
        self._recovery.progressed()

    async def _expanded(self, prompt: Prompt) -> str | None:
        """What a prompt stands for that calls a skill or a template; None for any other."""
        if not prompt.expand or self._state.skills is None:
            return None
        return (await self._state.skills.look()).expanded(prompt.text)

    async def _close_lost_calls(self) -> None:
        """Answer the calls that a crash left open; a conversation with an open call cannot go on."""
        if lost := self._state.transcript.unanswered_calls():
            await self._store([NewMessage(self._make.lost_result(call)) for call in lost])

    async def _store(self, new: Sequence[NewMessage]) -> None:
        """The way of every message that is no answer: stored, then announced."""
        if self._state.extensions.active:
            new = [await self._looked_at(item) for item in new]
        entry_ids = await self.stop.whole(self._state.transcript.append(self.id, new))
        for entry_id, item in zip(entry_ids, new, strict=True):
            self._added.append(item.message)
            self._emit(MessageStart(role=_ROLES[type(item.message)], message=item.message))
            self._emit(MessageEnd(message=item.message, entry_id=entry_id))

    async def _looked_at(self, item: NewMessage) -> NewMessage:
        await self._tell.message_started(_ROLES[type(item.message)])
        return msgspec.structs.replace(item, message=await self._tell.ending(item.message))

    async def _store_answer(self, call: ModelCall, reply: CallReply) -> AssistantMessage:
        if self._state.extensions.active:
            await self._tell.updates_told()
        answer = await self._tell.ending(reply.message)
        # Spent is spent, whether or not the answer can be kept.
        self._usage = add_usage(self._usage, answer.usage)
        if reply.failure is not None and self._retries.asks_too_much(reply.failure):
            wait, limit = reply.failure.retry_after_s, self._retries.options.max_delay_s
            note = f"{answer.error_message} (the service asks to wait {wait:g} s, this host waits {limit:g} s at most)"
            answer = msgspec.structs.replace(answer, error_message=note)
        entry_id = ""
        try:
            [entry_id] = await self.stop.whole(self._state.transcript.append(self.id, [NewMessage(answer)], answered_by=call.model))
        finally:
            shown = answer if entry_id else msgspec.structs.replace(answer, content=[], stop_reason="error")
            self._emit(MessageEnd(message=shown, entry_id=entry_id))
        self._added.append(answer)
        return answer

    def _note_end(self, reply: CallReply, answer: AssistantMessage) -> None:
        """Remember how the asking ended."""
        if answer.stop_reason == "aborted":
            self._result = "aborted"
        elif reply.failure is not None:
            self._fail(RunFailure(kind=reply.failure.kind, message=answer.error_message or "the model call failed"))
        else:
            self._recovery.progressed()

    def _end_retries(self, answer: AssistantMessage, *, repeated: int) -> None:
        """End the repetitions for those who watch."""
        if repeated:
            done = answer.stop_reason not in _UNFINISHED
            self._emit(RetryEnd(success=done, attempt=repeated, final_error=None if done else answer.error_message or "stopped"))

    def _fail(self, failure: RunFailure) -> None:
        self._result = "error"
        self._failure = failure

    def _settle(self, result: Literal["success", "error", "aborted"]) -> None:
        """The end, once: from here on the session is free."""
        if self.outcome.done():
            return
        self._emit(AgentEnd(messages=self._added))
        self._released(result)
        self._emit(AgentSettled(outcome=result))
        self.outcome.set_result(
            RunOutcome(
                run_id=self.id,
                outcome=result,
                text="\n\n".join(self._texts),
                source_ids=tuple(self._source_ids),
                usage=self._usage,
                failure=self._failure,
            )
        )

    def _no_answer(self) -> AssistantMessage:
        """Stands in ``turn_end`` for the answer of a turn that broke before it had one."""
        return ModelCall(self._state, self._state.model).unsent()
