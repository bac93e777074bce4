"""What of a branch the model reads."""

from collections.abc import Sequence

from features.contracts.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
)
from features.contracts.models import ThinkingLevel
from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    ThinkingLevelChangeEntry,
)
from features.sessions.timestamps import iso_unix_ms

__all__ = ["BranchContext"]


class BranchContext:
    """Messages, model and thinking level at the end of a branch; grows with it, so that a turn costs the same however long it is."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.model: tuple[str, str] | None = None
        self.thinking: ThinkingLevel = "off"

    @classmethod
    def of(cls, branch: Sequence[SessionEntry]) -> "BranchContext":
        """Build it from all entries of a branch, root first.

        The last compaction stands for everything before it but what it kept; a first kept entry that is not on the branch keeps nothing.
        """
        context = cls()
        last = max((index for index, entry in enumerate(branch) if isinstance(entry, CompactionEntry)), default=None)
        if last is None:
            kept = 0
        else:
            compaction = branch[last]
            assert isinstance(compaction, CompactionEntry)
            context.messages.append(_summary(compaction))
            kept = next((index for index, entry in enumerate(branch[:last]) if entry.id == compaction.first_kept_entry_id), last)
        for index, entry in enumerate(branch):
            if type(entry) is MessageEntry:  # nearly all of a long branch: they take the short way
                message = entry.message
                if type(message) is AssistantMessage:
                    context.model = message.provider, message.model
                if index >= kept:
                    context.messages.append(message)
                continue
            context._settle(entry)
            if index >= kept:
                context._add(entry)
        return context

    def extend(self, entry: SessionEntry) -> bool:
        """Take in the entry that follows; False for a compaction, after which the context has to be built anew."""
        if isinstance(entry, CompactionEntry):
            return False
        self._settle(entry)
        self._add(entry)
        return True

    def _settle(self, entry: SessionEntry) -> None:
        match entry:
            case ModelChangeEntry():
                self.model = entry.provider, entry.model_id
            case MessageEntry(message=AssistantMessage() as message):
                self.model = message.provider, message.model
            case ThinkingLevelChangeEntry():
                self.thinking = entry.thinking_level
            case _:
                pass

    def _add(self, entry: SessionEntry) -> None:
        match entry:
            case MessageEntry():
                self.messages.append(entry.message)
            case CustomMessageEntry():
                self.messages.append(_custom(entry))
            case BranchSummaryEntry() if entry.summary:
                self.messages.append(
                    BranchSummaryMessage(summary=entry.summary, from_id=entry.from_id, timestamp=iso_unix_ms(entry.timestamp))
                )
            case _:
                pass


def _summary(entry: CompactionEntry) -> CompactionSummaryMessage:
    return CompactionSummaryMessage(summary=entry.summary, tokens_before=entry.tokens_before, timestamp=iso_unix_ms(entry.timestamp))


def _custom(entry: CustomMessageEntry) -> CustomMessage:
    return CustomMessage(
        custom_type=entry.custom_type,
        content=entry.content,
        display=entry.display,
        details=entry.details,
        timestamp=iso_unix_ms(entry.timestamp),
    )
