"""When to compact, what to replace, and by what."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from features.compaction.preparation import FileOperations, Preparation, file_operations, prepare
from features.compaction.prompts import BRANCH, HISTORY, TURN_PREFIX
from features.compaction.summariser import Ask, Summariser
from features.compaction.summary_text import notes_of, summary_text
from features.compaction.tokens import context_tokens, estimate, is_hidden_overflow, message_of, request_overhead
from features.compaction.transcript import transcript_pieces
from features.contracts.errors import RetryLater, UserMustAct
from features.contracts.messages import AssistantMessage, CompactionSummaryMessage, Message, ToolResultMessage
from features.contracts.models import Model, ToolSpec
from features.contracts.sessions import BranchSummaryEntry, SessionEntry

__all__ = ["CompactionOptions", "Compactor", "Summary"]

_SMALLEST_OUTPUT = 256
_DEFAULT_RESERVE = 16_384
_PREFIX_TITLE = "**The work in progress, from its beginning:**"


class CompactionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes are tokens.

    A context that comes nearer to the model's window than ``reserve_tokens`` is compacted; about ``keep_recent_tokens`` of it are kept word
    for word. Both are at most a quarter of the window. ``enabled`` False leaves compaction to whoever asks for it.
    """

    enabled: bool = True
    reserve_tokens: int = 16_384
    keep_recent_tokens: int = 20_000


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be stored. ``tokens_after`` is an estimate of the context with it, without system prompt and tools."""

    text: str
    first_kept_entry_id: str
    tokens_before: int
    tokens_after: int
    details: Any = None


class Compactor:
    """Serves every session of a host; keeps nothing between calls."""

    def __init__(self, options: CompactionOptions | None = None) -> None:
        self.options = CompactionOptions() if options is None else options

    def is_due(self, tokens: int, model: Model) -> bool:
        """Whether a context of that size comes too near to the end of the model's window."""
        return self.options.enabled and tokens > model.context_window - min(self.options.reserve_tokens, model.context_window // 4)

    def context_tokens(self, newest_first: Iterable[SessionEntry], messages: Sequence[Message], *, overhead: int = 0) -> int:
        """The size of the next request, as far as it is known: see ``tokens.context_tokens``."""
        return context_tokens(newest_first, messages, overhead=overhead)

    def overhead(self, system_prompt: str, tools: Sequence[ToolSpec]) -> int:
        """What goes along with every request beside its messages."""
        return request_overhead(system_prompt, tools)

    def is_hidden_overflow(self, answer: AssistantMessage, model: Model) -> bool:
        """Whether a service cut an answer off before its first word because the request filled the window."""
        return is_hidden_overflow(answer, model.context_window)

    def prepare(self, branch: Sequence[SessionEntry], model: Model, *, limit: int | None = None) -> Preparation:
        """Find what would be replaced.

        Args:
            limit: tokens that turned out to be too many for the model, whatever is written about its window.

        Raises:
            UserMustAct: there is nothing to replace.
        """
        window = model.context_window if limit is None else min(model.context_window, limit)
        found = prepare(branch, keep_tokens=min(self.options.keep_recent_tokens, window // 4))
        if found is None:
            raise UserMustAct("There is nothing to sum up yet: all of this conversation is recent.")
        return found

    async def summarise(
        self,
        prepared: Preparation,
        model: Model,
        ask: Ask,
        *,
        instructions: str = "",
        keep: Sequence[str] = (),
        limit: int | None = None,
    ) -> Summary:
        """Write the summary that takes the place of what was prepared.

        Args:
            instructions: what whoever asked for it wants to be looked at above all.
            keep: texts that stand in the summary word for word.

        Raises:
            RetryLater: there is no summary, or it is no shorter than what it would replace.
        """
        writer = Summariser(model, ask, limit=model.context_window if limit is None else min(model.context_window, limit))
        notes = notes_of(prepared.previous_summary or "")
        if pieces := transcript_pieces(prepared.history):
            notes = await writer.write(
                HISTORY,
                pieces,
                max_output=self._max_output(model, 0.8),
                previous=notes or None,
                focus=instructions,
                standing=keep,
                think=True,
            )
        if pieces := transcript_pieces(prepared.turn_prefix):
            prefix = await writer.write(TURN_PREFIX, pieces, max_output=self._max_output(model, 0.5), focus=instructions, standing=keep)
            notes = f"{notes}\n\n---\n\n{_PREFIX_TITLE}\n\n{prefix}" if notes else f"{_PREFIX_TITLE}\n\n{prefix}"
        return self.finish(prepared, notes, keep=keep)

    def finish(self, prepared: Preparation, notes: str, *, keep: Sequence[str] = ()) -> Summary:
        """Make notes, the model's or an extension's, into what is stored.

        Raises:
            RetryLater: they are no shorter than what they would replace.
        """
        text = summary_text(notes or "(nothing was said in words)", prepared.files, keep)
        size = estimate(CompactionSummaryMessage(summary=text, tokens_before=0, timestamp=0))
        if size >= prepared.replaced_tokens:
            raise RetryLater(
                f"The summary would be no shorter ({size:,} tokens) than what it stands for ({prepared.replaced_tokens:,} tokens), "
                "so I left everything as it is."
            )
        return Summary(
            text=text,
            first_kept_entry_id=prepared.first_kept_entry_id,
            tokens_before=prepared.tokens_before,
            tokens_after=size + prepared.kept_tokens,
            details=_details(prepared.files),
        )

    async def summarise_branch(
        self, entries: Sequence[SessionEntry], model: Model, ask: Ask, *, instructions: str = ""
    ) -> tuple[str, Any] | None:
        """Sum up entries that the conversation leaves, oldest first; the text and the details to store, None where nothing was said.

        Raises:
            RetryLater: there is no summary.
        """
        messages = [message for entry in entries if (message := message_of(entry)) is not None]
        pieces = transcript_pieces([message for message in messages if not isinstance(message, ToolResultMessage)])
        if not pieces:
            return None
        earlier = next((entry for entry in reversed(entries) if isinstance(entry, BranchSummaryEntry)), None)
        files = file_operations(messages, previous=earlier)
        writer = Summariser(model, ask, limit=model.context_window)
        notes = await writer.write(BRANCH, pieces, max_output=self._max_output(model, 0.5), focus=instructions)
        return summary_text(notes, files), _details(files)

    def _max_output(self, model: Model, share: float) -> int:
        reserve = self.options.reserve_tokens or _DEFAULT_RESERVE
        return max(min(int(reserve * share), model.max_output, model.context_window // 4), _SMALLEST_OUTPUT)


def _details(files: FileOperations) -> dict[str, list[str]]:
    return {"readFiles": list(files.read), "modifiedFiles": list(files.modified)}
