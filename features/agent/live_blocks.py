"""The blocks of an answer on their way to the listeners."""

from features.agent.redaction import Redaction
from features.contracts.processes import StreamRedactor
from features.contracts.stream import (
    BlockEvent,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)

__all__ = ["LiveBlocks"]

_Delta = type[TextDelta] | type[ThinkingDelta] | type[ToolCallDelta]


class LiveBlocks:
    """Redacts each block as a stream of its own; what is held back comes at the latest right before the block's end."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._open: dict[int, tuple[StreamRedactor, _Delta]] = {}

    def show(self, event: BlockEvent) -> list[BlockEvent]:
        """What may be seen of an event: nothing, the event or more."""
        index = event.content_index
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            if index not in self._open:
                self._open[index] = (self._redaction.stream(), type(event))
            piece = self._open[index][0].feed(event.delta)
            return [type(event)(content_index=index, delta=piece)] if piece else []
        if isinstance(event, TextStarted | ThinkingStarted):
            self._open[index] = (self._redaction.stream(), TextDelta if isinstance(event, TextStarted) else ThinkingDelta)
            return [event]
        if isinstance(event, ToolCallStarted):
            self._open[index] = (self._redaction.stream(), ToolCallDelta)
            return [ToolCallStarted(content_index=index, id=event.id, name=self._redaction.text(event.name))]
        if isinstance(event, ToolCallEnded):
            return [*self._tail(index), ToolCallEnded(content_index=index, tool_call=self._redaction.call(event.tool_call))]
        return [*self._tail(index), event]

    def close(self) -> list[BlockEvent]:
        """The ends of blocks that an answer left open when it broke off. A call that never became whole has no end."""
        ends: list[BlockEvent] = []
        for index, (_, kind) in list(self._open.items()):
            ends.extend(self._tail(index))
            if kind is TextDelta:
                ends.append(TextEnded(content_index=index))
            elif kind is ThinkingDelta:
                ends.append(ThinkingEnded(content_index=index))
        return ends

    def _tail(self, index: int) -> list[BlockEvent]:
        if index not in self._open:
            return []
        redactor, kind = self._open.pop(index)
        rest = redactor.finish()
        return [kind(content_index=index, delta=rest)] if rest else []
