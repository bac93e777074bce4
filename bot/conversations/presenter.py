"""A run as its chat sees it while it goes on."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal

from bot.conversations.elapsed import with_elapsed
from features.contracts.chat import LiveView
from features.contracts.clock import Clock
from features.contracts.events import (
    AgentEnd,
    CompactionEnd,
    CompactionStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    RetryStart,
    SessionEvent,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from features.contracts.messages import AssistantMessage, TextBlock, ToolCall, message_text
from features.contracts.stream import TextDelta, TextStarted

__all__ = ["SUMMING_UP", "NoView", "Presenter", "Verbosity", "tool_line"]

SUMMING_UP = "summing up what was said before"

Verbosity = Literal["off", "status", "full"]

_EVERY_S = 0.2
_BEAT_S = 5.0
_LONGEST_LINE = 120
_LONGEST_PROGRESS = 80
_LONGEST_RESULT = 600


class NoView:
    """Implements ``LiveView`` for a run that nobody waits for: it is seen when it has something to say."""

    lasting = False

    def show(self, text: str) -> None:
        pass

    def status(self, line: str | None) -> None:
        pass

    async def close(self) -> str | None:
        return None


class _RunningTool:
    """A tool at work: its line, since when, and the last that it reported."""

    def __init__(self, line: str, since: float) -> None:
        self.line = line
        self.since = since
        self.progress = ""

    def shown(self, now: float) -> str:
        line = with_elapsed(self.line, now - self.since)
        return f"{line}: {self.progress}" if self.progress else line


class Presenter:
    """Turns session events into states of a live view. The text is joined at most five times a second, and only if it grew.

    While tools run the status is composed anew every five seconds, with what they report and how long they have been at it, so that a
    silent one is seen to be alive.

    Args:
        stream: whether the text is shown while it grows.
        may_show: asked once, before the first text or status is shown, of a view that may leave a draft behind; False shows none.
        spawn: starts a task that somebody owns; what is still waiting at the end is cancelled.
        tell: delivers a message of its own, for ``full``.
    """

    def __init__(
        self,
        view: LiveView,
        *,
        clock: Clock,
        stream: bool,
        verbose: Verbosity,
        may_show: Callable[[], Coroutine[Any, Any, bool]],
        spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Future[None]"],
        tell: Callable[[str], Coroutine[Any, Any, None]],
    ) -> None:
        self._view = view
        self._clock = clock
        self._stream = stream
        self._verbose = verbose
        self._may_show = may_show
        self._spawn = spawn
        self._tell = tell
        self._answers: list[str] = []
        self._pieces: list[str] = []
        self._running: dict[str, _RunningTool] = {}
        self._notes: tuple[str, ...] = ()
        self._beating: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._allowed: bool | None = None if view.lasting else True
        self._asking = False
        self._closed = False
        self._left: str | None = None

    def on_event(self, event: SessionEvent) -> None:
        match event:
            case MessageUpdate(assistant_message_event=TextDelta(delta=piece)):
                self._pieces.append(piece)
                self._show_soon()
            case MessageUpdate(assistant_message_event=TextStarted()) if self._pieces:
                self._pieces.append("\n")
            case MessageStart(role="assistant") | RetryStart():
                self._pieces.clear()
            case MessageEnd(message=AssistantMessage() as message):
                self._end_message(message)
            case CompactionStart():
                self._begin(SUMMING_UP, SUMMING_UP)
            case CompactionEnd():
                self._end(SUMMING_UP)
            case ToolExecutionStart():
                self._begin(event.tool_call_id, tool_line(event))
            case ToolExecutionUpdate():
                if (tool := self._running.get(event.tool_call_id)) is not None:
                    tool.progress = _last_line(event.partial_result)
            case ToolExecutionEnd():
                self._end_tool(event)
            case AgentEnd():
                self._running.clear()
                self._rest()
                self._show_status()
            case _:
                pass

    def note(self, lines: Sequence[str]) -> None:
        """Show lines beside what is being done, until told others."""
        if tuple(lines) != self._notes:
            self._notes = tuple(lines)
            self._show_status()

    async def close(self) -> str | None:
        """End the view; the id of the draft that it leaves. May be called twice."""
        if not self._closed:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._rest()
            if self._stream and self._allowed and self._answers:  # whatever the view can still show needs no edit afterwards
                self._view.show("\n\n".join(self._answers))
            self._left = await self._view.close()
        return self._left

    def _end_message(self, message: AssistantMessage) -> None:
        if message.stop_reason == "error":
            self._pieces.clear()  # a failed attempt; what follows stands in its place
        elif not any(isinstance(block, ToolCall) for block in message.content):
            self._pieces.clear()
            if text := message_text(message):
                self._answers.append(text)

    def _begin(self, key: str, line: str) -> None:
        self._running[key] = _RunningTool(line, self._clock.monotonic())
        self._show_status()
        self._beat()

    def _end(self, key: str) -> _RunningTool | None:
        tool = self._running.pop(key, None)
        if not self._running:
            self._rest()
        self._show_status()
        return tool

    def _end_tool(self, event: ToolExecutionEnd) -> None:
        tool = self._end(event.tool_call_id)
        line = event.tool_name if tool is None else tool.line
        if self._verbose == "full":
            result = "\n".join(block.text for block in event.content if isinstance(block, TextBlock)).strip()
            shown = result if len(result) <= _LONGEST_RESULT else result[:_LONGEST_RESULT] + " …"
            fence = "````"
            self._spawn(self._tell(f"{'✗' if event.is_error else '✓'} {line}" + (f"\n{fence}\n{shown}\n{fence}" if shown else "")))

    def _show_status(self) -> None:
        if self._verbose == "off" or (not self._allowed and not self._running and not self._notes):
            return
        if self._permitted():
            self._view.status(self._status())

    def _status(self) -> str | None:
        tools = list(self._running.values())
        lines = [] if not tools else [tools[-1].shown(self._clock.monotonic()) + (f" (and {len(tools) - 1} more)" if tools[1:] else "")]
        return " · ".join([*lines, *self._notes]) or None

    def _beat(self) -> None:
        if self._beating is None and self._verbose != "off":
            self._beating = self._spawn(self._keep_showing())

    def _rest(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None

    async def _keep_showing(self) -> None:
        while True:
            await self._clock.sleep(_BEAT_S)
            self._show_status()

    def _show_soon(self) -> None:
        if self._stream and self._timer is None and not self._closed and self._allowed is not False:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._show)

    def _show(self) -> None:
        self._timer = None
        if self._closed or not self._permitted():
            return
        text = "".join(self._pieces)
        self._pieces[:] = [text]
        self._view.show("\n\n".join([*self._answers, text] if text.strip() else self._answers))

    def _permitted(self) -> bool:
        """Whether anything may be shown; while that is not known, it is found out, and what is to be shown then is shown then."""
        if self._allowed is None and not self._asking:
            self._asking = True
            self._spawn(self._ask())
        return bool(self._allowed) and not self._closed

    async def _ask(self) -> None:
        self._allowed = await self._may_show()
        if self._running or self._notes:
            self._show_status()
        if self._stream and (self._pieces or self._answers):
            self._show()


def _last_line(text: str) -> str:
    """The last line of a report that says something."""
    line = next((line for line in reversed(text[-4000:].splitlines()) if line.strip()), "")
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST_PROGRESS else line[: _LONGEST_PROGRESS - 1] + "…"


def tool_line(event: ToolExecutionStart) -> str:
    """The tool and what it works on, in one line."""
    subject = next((value for value in event.args.values() if isinstance(value, str) and value.strip()), "")
    line = " ".join(f"{event.tool_name} {subject}".split())
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"
