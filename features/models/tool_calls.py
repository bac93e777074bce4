"""A tool call that is being streamed."""

import msgspec

from features.contracts.messages import ToolCall
from features.contracts.stream import PartialMessage, ToolCallEnded, ToolCallStarted

__all__ = ["OpenCall"]

MAX_KEPT_INVALID = 20_000


class OpenCall(msgspec.Struct):
    """Collects the pieces of a call's arguments; they are parsed once, at the end, and never repaired."""

    content_index: int
    id: str
    name: str
    pieces: list[str]

    @classmethod
    def begin(cls, partial: PartialMessage, id: str, name: str) -> "OpenCall":
        return cls(partial.add(ToolCall(id=id, name=name, arguments={})), id, name, [])

    def started(self) -> ToolCallStarted:
        return ToolCallStarted(content_index=self.content_index, id=self.id, name=self.name)

    def end(self, partial: PartialMessage) -> ToolCallEnded:
        text = "".join(self.pieces)
        try:
            arguments = msgspec.json.decode(text) if text.strip() else {}
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            arguments = None
        if isinstance(arguments, dict):
            call = ToolCall(id=self.id, name=self.name, arguments=arguments)
        else:
            call = ToolCall(id=self.id, name=self.name, arguments={}, invalid_arguments=text[:MAX_KEPT_INVALID])
        partial.replace(self.content_index, call)
        return ToolCallEnded(content_index=self.content_index, tool_call=call)

    def abandon(self, partial: PartialMessage) -> None:
        """Keep what came of a call that never ended; it must not look whole."""
        text = "".join(self.pieces)[:MAX_KEPT_INVALID]
        partial.replace(self.content_index, ToolCall(id=self.id, name=self.name, arguments={}, invalid_arguments=text))
