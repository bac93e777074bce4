"""Where a branch may be cut, and where it is."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from features.compaction.tokens import estimate
from features.contracts.messages import AssistantMessage, BashExecutionMessage, ToolCall, ToolResultMessage, UserMessage
from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    SessionEntry,
)

__all__ = ["Cut", "find_cut"]

M = TypeVar("M")


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """``kept`` is the index of the first entry that stays; ``turn`` that where its turn begins, None where the cut splits no turn."""

    kept: int
    turn: int | None = None


def find_cut(branch: Sequence[SessionEntry], start: int, end: int, *, keep_tokens: int) -> Cut:
    """Keep about the last ``keep_tokens`` of ``branch[start:end]``.

    The cut never stands between a call and its result, whatever else came in between. Where the last messages are too large by
    themselves, as many results of one answer are, the cut is before the answer that they belong to.
    """
    possible = _possible(branch, start, end)
    if not possible:
        return Cut(kept=start)
    kept = possible[0]
    total = 0
    for index in range(end - 1, start - 1, -1):
        entry = branch[index]
        if not isinstance(entry, MessageEntry):
            continue
        total += estimate(entry.message)
        if total >= max(keep_tokens, 1):  # a failed attempt at the end weighs nothing and is no beginning
            kept = next((place for place in possible if place >= index), possible[-1])
            break
    kept = _with_what_precedes(branch, start, kept)
    entry = branch[kept]
    if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
        return Cut(kept=kept)
    turn = next((index for index in range(kept, start - 1, -1) if _begins_turn(branch[index])), None)
    return Cut(kept=kept, turn=turn)


def _possible(branch: Sequence[SessionEntry], start: int, end: int) -> list[int]:
    """The places where no call before has its result behind."""
    last_result: dict[str, int] = {}
    for index in range(start, end):
        if (message := _message(branch[index], ToolResultMessage)) is not None:
            last_result[message.tool_call_id] = index
    places: list[int] = []
    reach = -1
    for index in range(start, end):
        if index > reach and _may_begin(branch[index]):
            places.append(index)
        if (answer := _message(branch[index], AssistantMessage)) is not None:
            results = (last_result.get(block.id, -1) for block in answer.content if isinstance(block, ToolCall))
            reach = max(reach, *results, -1)
    return places


def _message(entry: SessionEntry, kind: type[M]) -> M | None:
    return entry.message if isinstance(entry, MessageEntry) and isinstance(entry.message, kind) else None


def _may_begin(entry: SessionEntry) -> bool:
    if isinstance(entry, MessageEntry):
        return not isinstance(entry.message, ToolResultMessage)
    return isinstance(entry, BranchSummaryEntry | CustomMessageEntry)


def _begins_turn(entry: SessionEntry) -> bool:
    if isinstance(entry, MessageEntry):
        return isinstance(entry.message, UserMessage | BashExecutionMessage)
    return isinstance(entry, BranchSummaryEntry | CustomMessageEntry)


def _with_what_precedes(branch: Sequence[SessionEntry], start: int, kept: int) -> int:
    """Model changes, labels and the like directly before belong to what is kept."""
    while kept > start and not isinstance(branch[kept - 1], MessageEntry | CompactionEntry):
        kept -= 1
    return kept
