"""A run as its chat sees it while it goes on."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from features.contracts.chat import LiveView
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
)
from features.contracts.messages import AssistantMessage, TextBlock, ToolCall, message_text
from features.contracts.stream import TextDelta, TextStarted

__all__ = ["SUMMING_UP", "Presenter", "Verbosity", "tool_line"]

SUMMING_UP = "summing up what was said before"

Verbosity = Literal["off", "status", "full"]

_EVERY_S = 0.2
_LONGEST_LINE = 120
_LONGEST_RESULT = 600


class Presenter:
    """Turns session events into states of a live view. The text is joined at most five times a second, and only if it grew.

    Args:
        stream: whether the text is shown while it grows.
        may_show: asked once, before the first text or status is shown, since either may open a draft; False shows none.
        spawn: starts a task that somebody owns.
        tell: delivers a message of its own, for ``full``.
    """

    def __init__(
        self,
        view: LiveView,
        *,
        stream: bool,
        verbose: Verbosity,
        may_show: Callable[[], Coroutine[Any, Any, bool]],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        tell: Callable[[str], Coroutine[Any, Any, None]],
    ) -> None:
        self._view = view
        self._stream = stream
        self._verbose = verbose
        self._may_show = may_show
        self._spawn = spawn
        self._tell = tell
        self._answers: list[str] = []
        self._pieces: list[str] = []
        self._running: dict[str, str] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._allowed: bool | None = None
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
                self._running[SUMMING_UP] = SUMMING_UP
                self._show_status()
            case CompactionEnd():
                self._running.pop(SUMMING_UP, None)
                self._show_status()
            case ToolExecutionStart():
                self._running[event.tool_call_id] = tool_line(event)
                self._show_status()
            case ToolExecutionEnd():
                self._end_tool(event)
            case AgentEnd():
                self._running.clear()
                self._show_status()
            case _:
                pass

    async def close(self) -> str | None:
        """End the view; the id of the draft that it leaves. May be called twice."""
        if not self._closed:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
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

    def _end_tool(self, event: ToolExecutionEnd) -> None:
        line = self._running.pop(event.tool_call_id, event.tool_name)
        self._show_status()
        if self._verbose == "full":
            result = "\n".join(block.text for block in event.content if isinstance(block, TextBlock)).strip()
            shown = result if len(result) <= _LONGEST_RESULT else result[:_LONGEST_RESULT] + " …"
            fence = "````"
            self._spawn(self._tell(f"{'✗' if event.is_error else '✓'} {line}" + (f"\n{fence}\n{shown}\n{fence}" if shown else "")))

    def _show_status(self) -> None:
        if self._verbose == "off" or (self._allowed is None and not self._running):
            return
        if self._permitted():
            lines = list(self._running.values())
            self._view.status(None if not lines else lines[-1] if len(lines) == 1 else f"{lines[-1]} (and {len(lines) - 1} more)")

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
        if self._running:
            self._show_status()
        if self._stream and (self._pieces or self._answers):
            self._show()


def tool_line(event: ToolExecutionStart) -> str:
    """The tool and what it works on, in one line."""
    subject = next((value for value in event.args.values() if isinstance(value, str) and value.strip()), "")
    line = " ".join(f"{event.tool_name} {subject}".split())
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"
