"""What a compaction would summarise, and what it would keep."""

from collections.abc import Sequence
from typing import Any

import msgspec

from features.compaction.cut import find_cut
from features.compaction.tokens import context_tokens, message_of, sent_estimate
from features.contracts.messages import AssistantMessage, CompactionSummaryMessage, Message, ToolCall
from features.contracts.sessions import BranchSummaryEntry, CompactionEntry, SessionEntry

__all__ = ["FileOperations", "Preparation", "file_operations", "prepare"]


class FileOperations(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that the conversation touched, sorted; what was changed is not listed as read."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


class Preparation(msgspec.Struct, frozen=True, kw_only=True):
    """``history`` is summarised; ``turn_prefix``, the beginning of a turn whose end is kept, by itself.

    ``leaf_id`` is the end of the branch that was looked at. ``tokens_before`` is the size of the context, ``replaced_tokens`` and
    ``kept_tokens`` are estimates of its two parts, without system prompt and tools.
    """

    first_kept_entry_id: str
    history: list[Message]
    turn_prefix: list[Message]
    previous_summary: str | None
    leaf_id: str
    tokens_before: int
    replaced_tokens: int
    kept_tokens: int
    files: FileOperations


def prepare(branch: Sequence[SessionEntry], *, keep_tokens: int) -> Preparation | None:
    """None where there is nothing to compact: nothing was said since the last compaction, or all of it would be kept.

    What an earlier compaction kept is summarised again, since it stands in no summary yet.
    """
    last = next((index for index in range(len(branch) - 1, -1, -1) if isinstance(branch[index], CompactionEntry)), None)
    if not _messages(branch[0 if last is None else last + 1 :]):
        return None
    previous = branch[last] if last is not None else None
    start = _start(branch, last)
    cut = find_cut(branch, start, len(branch), keep_tokens=keep_tokens)
    history_end = cut.kept if cut.turn is None else cut.turn
    history = _messages(branch[start:history_end])
    prefix = _messages(branch[history_end : cut.kept])
    if not history and not prefix:
        return None
    summary = previous.summary if isinstance(previous, CompactionEntry) else None
    context = _messages(branch[start:])
    if summary is not None:
        context.insert(0, CompactionSummaryMessage(summary=summary, tokens_before=0, timestamp=0))
    kept_tokens = sum(map(sent_estimate, _messages(branch[cut.kept :])))
    return Preparation(
        first_kept_entry_id=branch[cut.kept].id,
        history=history,
        turn_prefix=prefix,
        previous_summary=summary,
        leaf_id=branch[-1].id,
        tokens_before=context_tokens(reversed(branch[start:]), context),
        replaced_tokens=sum(map(sent_estimate, context)) - kept_tokens,
        kept_tokens=kept_tokens,
        files=file_operations([*history, *prefix], previous=previous if isinstance(previous, CompactionEntry) else None),
    )


def _start(branch: Sequence[SessionEntry], last: int | None) -> int:
    if last is None:
        return 0
    previous = branch[last]
    assert isinstance(previous, CompactionEntry)
    return next((index for index in range(last) if branch[index].id == previous.first_kept_entry_id), last + 1)


def _messages(entries: Sequence[SessionEntry]) -> list[Message]:
    return [message for entry in entries if (message := message_of(entry)) is not None]


def file_operations(messages: Sequence[Message], *, previous: CompactionEntry | BranchSummaryEntry | None = None) -> FileOperations:
    """What the messages' calls read and changed, and what ``previous`` had noted of earlier ones; an extension's notes are its own."""
    read: set[str] = set()
    modified: set[str] = set()
    if previous is not None and not previous.from_hook and isinstance(previous.details, dict):
        read.update(_paths(previous.details.get("readFiles")))
        modified.update(_paths(previous.details.get("modifiedFiles")))
    for message in messages:
        if not isinstance(message, AssistantMessage):
            continue
        for block in message.content:
            if isinstance(block, ToolCall) and isinstance(path := block.arguments.get("path"), str):
                if block.name == "read":
                    read.add(path)
                elif block.name in ("write", "edit"):
                    modified.add(path)
    return FileOperations(read=tuple(sorted(read - modified)), modified=tuple(sorted(modified)))


def _paths(value: Any) -> list[str]:
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []
