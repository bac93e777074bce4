"""The tool calls of one answer: each gets exactly one result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from features.agent.interruption import Interruption, RunStopped
from features.agent.result_budget import ResultBudget
from features.agent.session_state import SessionState
from features.contracts.clock import unix_ms
from features.contracts.errors import ModelMustAct, PumiceError
from features.contracts.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from features.contracts.extension_events import ToolCalled, ToolExecutionEnded, ToolExecutionStarted, ToolExecutionUpdated, ToolResulted
from features.contracts.messages import ToolCall, ToolResultMessage
from features.contracts.tools import Tool, ToolContext, ToolInvocation, ToolResult, text_result
from features.extensions import tool_at_work

__all__ = ["ToolBatch"]

log = logging.getLogger("pumice.agent")

_GRACE_S = 5.0
_STOPPED = "The run was stopped before this call had finished. What it had done until then may stand."
_CUT_OFF = (
    "Tool call {name!r} was not run: the answer hit the output token limit, so the arguments may be incomplete. "
    "Send the call again with complete arguments, in smaller pieces if need be."
)


class _Step:
    """One call on its way: what the model wrote, what may be shown of it, and in the end its result."""

    def __init__(self, call: ToolCall, shown: ToolCall) -> None:
        self.call = call
        self.shown = shown
        self.tool: Tool | None = None
        self.arguments: dict[str, Any] = {}
        self.task: asyncio.Task[None] | None = None
        self.result: ToolResultMessage | None = None


class ToolBatch:
    """Prepares the calls in their order, runs them, at the same time unless a tool wants to be alone, and hands the results on in order.

    Args:
        offered: the tools of the request that was answered; no other is run.
        cut_off: the answer was cut by its length, so nothing of it is run.
        save: stores results; called with the next ones in order as soon as all before them are there.
    """

    def __init__(
        self,
        state: SessionState,
        calls: Sequence[ToolCall],
        *,
        offered: Mapping[str, Tool],
        cut_off: bool,
        context: ToolContext,
        stop: Interruption,
        save: Callable[[Sequence[ToolResultMessage]], Awaitable[None]],
    ) -> None:
        self._registry = state.tools
        self._extensions = state.extensions
        self._redaction = state.services.redaction
        self._clock = state.services.clock
        self._ids = state.services.ids
        self._emit = state.listeners.emit
        self._steps = [_Step(call, self._redaction.call(call)) for call in calls]
        self._offered = offered
        self._cut_off = cut_off
        self._context = context
        self._stop = stop
        self._save = save
        self._saved = 0
        self._ended: list[_Step] = []
        self._budget = ResultBudget(context.scratch, state.services.ids)

    async def run(self) -> None:
        """Returns when every call has its result and all of them are stored, also after a stop."""
        alone = any(tool.execution == "sequential" for step in self._steps if (tool := self._offered.get(step.call.name)) is not None)
        try:
            for group in [[step] for step in self._steps] if alone else [self._steps]:
                for step in group:
                    await self._prepare(step)
                for step in group:
                    if step.result is None:
                        step.task = asyncio.create_task(self._execute(step), name=f"tool {step.call.name}")
                await self._finish_group(group)
        finally:
            await self._end_tasks()

    async def _prepare(self, step: _Step) -> None:
        """Announce a call and find out whether it may run; one that may not has its result at once."""
        call = step.call
        self._emit(ToolExecutionStart(tool_call_id=call.id, tool_name=step.shown.name, args=step.shown.arguments))
        if self._extensions.wants(ToolExecutionStarted):
            await self._stop.whole(self._extensions.dispatch(ToolExecutionStarted(step.shown)))
        if self._stop.requested:
            return self._close(step, text_result(_STOPPED, is_error=True))
        if self._cut_off:
            return self._close(step, text_result(_CUT_OFF.format(name=call.name), is_error=True))
        try:
            step.tool = self._look_up(call)
            step.arguments = self._registry.validate(step.tool, call.arguments)
            if self._extensions.wants(ToolCalled):
                await self._ask(step, step.tool)
        except RunStopped:
            self._close(step, text_result(_STOPPED, is_error=True))
        except Exception as error:
            self._close(step, self._failed(step, error))

    async def _ask(self, step: _Step, tool: Tool) -> None:
        """The gate, after the start was announced and before anything runs. What it makes of the arguments is looked at again.

        Raises:
            ModelMustAct: the call must not run, or has arguments that do not fit.
            RunStopped: when told to stop.
        """
        with self._stop.cut_here():
            asked = await self._extensions.dispatch(ToolCalled(step.call, step.arguments, owner=self._context.owner))
        if asked.refusal is not None:
            raise ModelMustAct(asked.refusal)
        step.arguments = self._registry.validate(tool, asked.arguments)

    def _look_up(self, call: ToolCall) -> Tool:
        tool = self._offered.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._offered)) or "none"
            raise ModelMustAct(f"Tool {call.name!r} is not available in this request; available: {known}")
        if call.invalid_arguments is not None:
            raise ModelMustAct(
                f"The arguments of {call.name!r} were not a JSON object, so it was not run. Send the call again with valid JSON."
            )
        return tool

    async def _finish_group(self, group: Sequence[_Step]) -> None:
        while running := _running(group):
            await self._save_finished()
            try:
                with self._stop.cut_here():
                    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            except RunStopped:
                break
        await self._end_tasks()
        await self._save_finished()

    async def _save_finished(self) -> None:
        await self._tell_ended()
        ready = []
        for step in self._steps[self._saved :]:
            if step.result is None:
                break
            ready.append(self._budget.fitted(step.result))
        if ready:
            self._saved += len(ready)
            await self._save(ready)

    async def _tell_ended(self) -> None:
        """Tell extensions of calls that have ended, in the order of their ends."""
        while self._ended:
            step = self._ended.pop(0)
            assert step.result is not None
            await self._stop.whole(self._extensions.updates.flush())
            await self._stop.whole(self._extensions.dispatch(ToolExecutionEnded(step.shown, is_error=step.result.is_error)))

    async def _execute(self, step: _Step) -> None:
        with tool_at_work(self._extensions, owner=self._context.owner):
            await self._carry_out(step)

    async def _carry_out(self, step: _Step) -> None:
        assert step.tool is not None

        def report(text: str) -> None:
            if step.result is None:
                shown = self._redaction.text(text)
                self._emit(ToolExecutionUpdate(tool_call_id=step.call.id, tool_name=step.shown.name, partial_result=shown))
                self._extensions.update(ToolExecutionUpdated(step.shown, shown))

        call = ToolInvocation(id=step.call.id, arguments=step.arguments, context=self._context, report=report)
        try:
            result = await step.tool.run(call)
        except asyncio.CancelledError:
            return self._close(step, text_result(_STOPPED, is_error=True))
        except Exception as error:
            result = self._failed(step, error)
        except BaseException as error:  # an extension's tool must not end the host
            result = self._failed(step, RuntimeError(f"tried to end the host with {error!r}"))
        try:
            if self._extensions.wants(ToolResulted):
                result = await self._looked_at(step, result)
        finally:  # what has been done stands, also when nobody could look at it to the end
            self._close(step, result)

    async def _looked_at(self, step: _Step, result: ToolResult) -> ToolResult:
        """What extensions make of a result. They see it without secrets."""
        content = self._redaction.blocks(result.content)
        details = None if result.details is None else self._redaction.data(result.details)
        event = ToolResulted(step.shown, step.shown.arguments, content, details, is_error=result.is_error)
        event = await self._extensions.dispatch(event)
        return ToolResult(content=event.content, details=event.details, is_error=event.is_error)

    def _failed(self, step: _Step, error: Exception) -> ToolResult:
        if isinstance(error, PumiceError):
            return text_result(str(error), is_error=True)
        error_id = self._ids()
        log.exception("tool failed", exc_info=error, extra={"facts": {"tool": step.shown.name, "error_id": error_id}})
        return text_result(f"{type(error).__name__}: {error} (error {error_id})", is_error=True)

    def _close(self, step: _Step, result: ToolResult) -> None:
        """Give a call its result; what comes after that from the same call is ignored."""
        if step.result is not None:
            return
        message = ToolResultMessage(
            tool_call_id=step.call.id,
            tool_name=step.shown.name,
            content=self._redaction.blocks(result.content),
            details=None if result.details is None else self._redaction.data(result.details),
            is_error=result.is_error,
            timestamp=unix_ms(self._clock.now()),
        )
        step.result = message
        if self._extensions.wants(ToolExecutionEnded):
            self._ended.append(step)
        self._emit(
            ToolExecutionEnd(
                tool_call_id=message.tool_call_id,
                tool_name=message.tool_name,
                content=message.content,
                is_error=message.is_error,
                details=message.details,
            )
        )

    async def _end_tasks(self) -> None:
        """Cancel what still runs and wait for it, but not for ever; then no call is without a result."""
        if running := _running(self._steps):
            for task in running:
                task.cancel()
            await self._stop.whole(self._wait_for(running))
        for step in self._steps:
            if step.task is not None:
                self._close(step, text_result(_STOPPED, is_error=True))

    async def _wait_for(self, tasks: set[asyncio.Task[None]]) -> None:
        grace = asyncio.create_task(self._clock.sleep(_GRACE_S))
        try:
            pending = tasks
            while pending and not grace.done():
                _, rest = await asyncio.wait({*pending, grace}, return_when=asyncio.FIRST_COMPLETED)
                pending = rest - {grace}
            for task in pending:
                log.error("tool ignores that it was cancelled", extra={"facts": {"task": task.get_name()}})
        finally:
            grace.cancel()


def _running(steps: Sequence[_Step]) -> set[asyncio.Task[None]]:
    return {step.task for step in steps if step.task is not None and step.result is None and not step.task.done()}
