"""The one way into the stored session."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from features.contracts.agent import EntryJournal
from features.contracts.database import Transaction
from features.contracts.messages import AssistantMessage, CustomMessage, ToolCall, ToolResultMessage, UserMessage, message_text
from features.contracts.models import Model, ThinkingLevel
from features.contracts.sessions import (
    CompactionEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    ThinkingLevelChangeEntry,
    TransactionWork,
)
from features.sessions import SessionManager

__all__ = ["NewMessage", "Transcript"]


class NewMessage(msgspec.Struct, frozen=True):
    """A message to store; ``source_ids`` are those of the prompt it came from."""

    message: UserMessage | AssistantMessage | ToolResultMessage | CustomMessage
    source_ids: tuple[str, ...] = ()


class Transcript:
    """Appends to the session, one append after another, each together with the journal's work.

    Model and thinking level of a session that has none yet join its first append, so that they cost no commit of their own.

    Args:
        render: makes what people read of an extension's message.
    """

    def __init__(
        self,
        manager: SessionManager,
        *,
        model: Model,
        thinking: ThinkingLevel,
        journal: EntryJournal | None,
        ids: Callable[[], str],
        render: Callable[[CustomMessage], str] = message_text,
    ) -> None:
        self.manager = manager
        self._journal = journal
        self._ids = ids
        self._render = render
        self._writing = asyncio.Lock()
        self._model = (model.provider, model.id)
        self._thinking = thinking
        self._model_unsaved = manager.model is None
        self._thinking_unsaved = manager.thinking != thinking

    async def append(self, run_id: str, messages: Sequence[NewMessage], *, answered_by: Model | None = None) -> list[str]:
        """Store messages in one commit; gives their entries' ids.

        Args:
            answered_by: the model that was asked, for an assistant message. Where another one was chosen meanwhile, the choice is stored
                once more behind the message, because a session goes on with the model that its branch names last.
        """
        async with self._writing:
            made = [(self.manager.new_message_entry(new.message), new.source_ids) for new in messages]
            entries = [*self._unsaved(made[0][0].timestamp), *(entry for entry, _ in made)]
            if answered_by is not None and (answered_by.provider, answered_by.id) != self._model:
                entries.append(self._model_change(made[-1][0].timestamp))
            chained = _chained(entries, self.manager.leaf_id)
            sources = {entry.id: source_ids for entry, source_ids in made}
            works = [
                work
                for entry in chained
                if entry.id in sources
                and self._journal is not None
                and (work := self._journal(run_id, self._as_read(entry), sources[entry.id])) is not None
            ]
            await self.manager.append(chained, also=_together(works))
            self._model_unsaved = self._thinking_unsaved = False
            return [entry.id for entry, _ in made]

    async def set_model(self, model: Model) -> None:
        async with self._writing:
            await self.manager.set_model(model.provider, model.id)
            self._model = (model.provider, model.id)
            self._model_unsaved = False

    async def set_thinking(self, level: ThinkingLevel) -> None:
        async with self._writing:
            await self.manager.set_thinking(level)
            self._thinking = level
            self._thinking_unsaved = False

    def follow(self, model: Model, thinking: ThinkingLevel) -> None:
        """Another branch is at work; what it does not say of the model and the level joins its first append."""
        self._model = (model.provider, model.id)
        self._thinking = thinking
        self._model_unsaved = self.manager.model is None
        self._thinking_unsaved = self.manager.thinking != thinking

    async def set_name(self, name: str) -> None:
        async with self._writing:
            await self.manager.set_name(name)

    async def compact(
        self, summary: str, *, first_kept_entry_id: str, tokens_before: int, since: str, details: Any, from_hook: bool
    ) -> CompactionEntry:
        async with self._writing:
            return await self.manager.compact(
                summary,
                first_kept_entry_id=first_kept_entry_id,
                tokens_before=tokens_before,
                since=since,
                details=details,
                from_hook=from_hook,
            )

    async def set_label(self, entry_id: str, label: str) -> None:
        """
        Raises:
            KeyError: there is no such entry.
        """
        async with self._writing:
            await self.manager.set_label(entry_id, label)

    async def add_custom(self, custom_type: str, data: Any) -> str:
        """Store an entry that no model reads; gives its id."""
        async with self._writing:
            return await self.manager.add_custom(custom_type, data)

    def choose(self, model: Model) -> None:
        """Begin with another model than was given; nothing may have been stored yet."""
        self._model = (model.provider, model.id)

    def unanswered_calls(self) -> list[ToolCall]:
        """The calls at the end of the branch that have no result, as a crash leaves them behind."""
        answered: set[str] = set()
        for message in reversed(self.manager.messages):
            if isinstance(message, ToolResultMessage):
                answered.add(message.tool_call_id)
            elif isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
                return [block for block in message.content if isinstance(block, ToolCall) and block.id not in answered]
            else:
                return []
        return []

    def _as_read(self, entry: SessionEntry) -> SessionEntry:
        """A custom message that people are to see comes to the journal as they read it."""
        if isinstance(entry, MessageEntry) and isinstance(entry.message, CustomMessage) and entry.message.display:
            shown = msgspec.structs.replace(entry.message, content=self._render(entry.message))
            return msgspec.structs.replace(entry, message=shown)
        return entry

    def _unsaved(self, timestamp: str) -> list[SessionEntry]:
        entries: list[SessionEntry] = []
        if self._model_unsaved:
            entries.append(self._model_change(timestamp))
        if self._thinking_unsaved:
            entries.append(ThinkingLevelChangeEntry(id=self._ids(), parent_id=None, timestamp=timestamp, thinking_level=self._thinking))
        return entries

    def _model_change(self, timestamp: str) -> ModelChangeEntry:
        provider, model_id = self._model
        return ModelChangeEntry(id=self._ids(), parent_id=None, timestamp=timestamp, provider=provider, model_id=model_id)


def _chained(entries: Sequence[SessionEntry], leaf: str | None) -> list[SessionEntry]:
    """The entries one after another, the first on the leaf."""
    chained: list[SessionEntry] = []
    for entry in entries:
        chained.append(msgspec.structs.replace(entry, parent_id=leaf))
        leaf = entry.id
    return chained


def _together(works: Sequence[TransactionWork]) -> TransactionWork | None:
    if len(works) <= 1:
        return works[0] if works else None

    def all_of_them(transaction: Transaction) -> None:
        for work in works:
            work(transaction)

    return all_of_them
