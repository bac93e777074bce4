"""What a terminal shows of a chat's events."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from channels.console.block_splitter import BlockSplitter
from channels.console.connection import ConsoleEvent, ConsoleMessage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment

__all__ = ["Transcript"]

_STATUS_CHARS = 100


class Transcript:
    """Prints each block of an answer once it is complete; ``status`` is one line about what goes on now.

    Args:
        changed: called when ``status`` may be another.
    """

    def __init__(self, console: "Console", *, changed: Callable[[], None]) -> None:
        self.running = False
        self.was_connected = False
        self._console = console
        self._changed = changed
        self._splitter = BlockSplitter()
        self._streamed: list[str] = []
        self._doing = ""
        self._seen = ""
        self._fed: list[str] = []
        self._shown: set[str] = set()

    @property
    def status(self) -> str:
        """Nothing while no run goes on."""
        if not self.running:
            return ""
        writing = self._splitter.last_line.strip()
        return f"… {writing[-_STATUS_CHARS:]}" if writing else self._doing or "Working…"

    def take(self, event: ConsoleEvent) -> None:
        match event.name:
            case "connected":
                self.was_connected = True
            case "agent_start":
                self.running, self._doing, self._streamed = True, "", []
            case "agent_settled":
                self._print(self._splitter.finish())
                self.running, self._doing = False, ""
            case "message_update":
                self._update(event.data["assistantMessageEvent"])
            case "message_end":
                self._end_message(event.data["message"])
            case "tool_execution_start":
                self._doing = f"Running {event.data['toolName']}…"
            case "status":
                self._doing = event.data["line"] or ""
            case "tool_execution_end":
                self._console.print(f"  {'✗' if event.data.get('isError') else '✓'} {event.data['toolName']}", style="dim", markup=False)
                self._doing = ""
            case "retry_start":
                self._doing = f"The model does not answer; trying again ({event.data['attempt']} of {event.data['maxAttempts']})…"
            case "compaction_start":
                self._doing = "Summing up what was said before…"
            case "compaction_end":
                self._doing = ""
            case "delivered":
                self._deliver(msgspec.convert(event.data, ConsoleMessage))
            case "changed":
                self._change(msgspec.convert(event.data, ConsoleMessage))
        self._changed()

    def posted(self, identifier: str) -> None:
        """A message that was typed here; what is older was seen."""
        self._seen = max(self._seen, identifier)

    def catch_up(self, messages: Iterable[ConsoleMessage]) -> None:
        """Show what was said while the connection was lost."""
        self.running = False
        for message in messages:
            if message.id > self._seen and message.role == "assistant":
                self._deliver(message)

    def note(self, text: str) -> None:
        """Something from the terminal itself."""
        self._console.print(text, style="yellow", markup=False)

    def _update(self, event: dict[str, Any]) -> None:
        if event["type"] == "text_delta":
            self._fed.append(event["delta"])
            for block in self._splitter.feed(event["delta"]):
                self._print(block)
        elif event["type"] == "thinking_start":
            self._doing = "Thinking…"

    def _end_message(self, message: dict[str, Any]) -> None:
        if message["role"] != "assistant":
            return
        rest, fed = self._splitter.finish(), _plain("".join(self._fed))
        self._fed = []
        text = "\n\n".join(block["text"] for block in message["content"] if block["type"] == "text")
        whole = _plain(text)
        self._print(rest if fed == whole else text)  # the beginning may have streamed before we listened
        self._streamed.append(whole)

    def _deliver(self, message: ConsoleMessage) -> None:
        if message.id in self._shown:
            return
        self._shown.add(message.id)
        self._seen = max(self._seen, message.id)
        text = _plain(message.text)
        if text and text not in "".join(self._streamed):
            self._print(message.text)
        for file in message.files:
            self._console.print(f"  📄 {file.name}  {file.url}", markup=False)
        for button in (button for line in message.buttons for button in line):
            self._console.print(f"  {button.label}: {button.command}", style="cyan", markup=False)

    def _change(self, message: ConsoleMessage) -> None:
        """What is printed stays; the new ending of the message is what is new: how the question ended."""
        self._print(message.text.rsplit("\n\n", 1)[-1])

    def _print(self, text: str) -> None:
        from rich.markdown import Markdown
        from rich.segment import Segment, Segments

        if not text.strip():
            return
        lines = self._console.render_lines(Markdown(text, hyperlinks=False), pad=False)
        while lines and _is_blank(lines[0]):  # rich puts one before a list, which stands here as a block by itself
            lines.pop(0)
        while lines and _is_blank(lines[-1]):
            lines.pop()
        self._console.print(Segments([segment for line in [*lines, []] for segment in (*line, Segment.line())]), end="")


def _is_blank(line: "list[Segment]") -> bool:
    return not any(segment.text.strip() for segment in line)


def _plain(text: str) -> str:
    """For comparison: the log may join texts with other white space than they were streamed with."""
    return "".join(text.split())
