"""Makes the messages of a conversation that no model and no tool made."""

from typing import Any

from features.agent.redaction import Redaction
from features.contracts.agent import Prompt
from features.contracts.clock import Clock, unix_ms
from features.contracts.messages import CustomMessage, TextBlock, ToolCall, ToolResultMessage, UserBlock, UserMessage

__all__ = ["MessageMaker"]

_LOST_RESULT = "There is no result: the host stopped before this call had finished. It may have been carried out, wholly or in part."
_NUDGE = "Your last message was empty. Tell the person in a sentence or two what came of it, or what is missing."


class MessageMaker:
    def __init__(self, clock: Clock, redaction: Redaction) -> None:
        self._clock = clock
        self._redaction = redaction

    def said(self, prompt: Prompt, expanded: str | None = None) -> UserMessage | CustomMessage:
        """What joins the conversation with a prompt."""
        return self.user(prompt, expanded) if prompt.custom is None else prompt.custom

    def custom(self, custom_type: str, content: str | list[UserBlock], *, display: bool, details: Any = None) -> CustomMessage:
        """An extension's message, without secrets."""
        return CustomMessage(
            custom_type=custom_type,
            content=self._redaction.content(content),
            display=display,
            details=None if details is None else self._redaction.data(details),
            timestamp=self._now(),
        )

    def user(self, prompt: Prompt, expanded: str | None = None) -> UserMessage:
        """What a person said, with the time they said it and without secrets; pictures come after the text.

        Args:
            expanded: what the text stands for, where it calls something.
        """
        timestamp = self._now() if prompt.timestamp is None else prompt.timestamp
        parts = (prompt.preface, prompt.text if expanded is None else expanded, prompt.postscript)
        text = self._redaction.text("\n".join(part for part in parts if part))
        if not prompt.images:
            return UserMessage(content=text, timestamp=timestamp)
        return UserMessage(content=[*([TextBlock(text=text)] if text else []), *prompt.images], timestamp=timestamp)

    def nudge(self) -> CustomMessage:
        """Asks a model that had nothing to say after its work for a word."""
        return CustomMessage(custom_type="nudge", content=_NUDGE, display=False, timestamp=self._now())

    def lost_result(self, call: ToolCall) -> ToolResultMessage:
        """Stands for the result of a call that a crash cut off."""
        content: list[UserBlock] = [TextBlock(text=_LOST_RESULT)]
        return ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=content, is_error=True, timestamp=self._now())

    def _now(self) -> int:
        return unix_ms(self._clock.now())
