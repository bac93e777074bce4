"""The entries of a session's tree and the store that keeps them (pi session format, version 3)."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from features.contracts.database import Transaction
from features.contracts.messages import (
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from features.contracts.models import ThinkingLevel

__all__ = [
    "BranchSummaryEntry",
    "CompactionEntry",
    "CustomEntry",
    "CustomMessageEntry",
    "LabelEntry",
    "MessageEntry",
    "ModelChangeEntry",
    "SessionEntry",
    "SessionHeader",
    "SessionInfoEntry",
    "SessionLines",
    "SessionStore",
    "SessionSummary",
    "ThinkingLevelChangeEntry",
    "TransactionWork",
    "TreeNode",
    "UnknownEntry",
]

TransactionWork = Callable[[Transaction], None]
"""SQL that joins the transaction of something else."""


# No cycle runs through an entry, and the collector would walk through tens of thousands of them.
class _Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", tag_field="type"):
    """``timestamp`` is ISO 8601 in UTC with milliseconds and ``Z``. ``id`` is unique within the session."""

    id: str
    parent_id: str | None
    timestamp: str


class MessageEntry(_Entry, frozen=True, kw_only=True, tag="message"):
    message: UserMessage | AssistantMessage | ToolResultMessage | CustomMessage | BashExecutionMessage


class ModelChangeEntry(_Entry, frozen=True, kw_only=True, tag="model_change"):
    provider: str
    model_id: str


class ThinkingLevelChangeEntry(_Entry, frozen=True, kw_only=True, tag="thinking_level_change"):
    thinking_level: ThinkingLevel


class CompactionEntry(_Entry, frozen=True, kw_only=True, tag="compaction", omit_defaults=True):
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    details: Any = None
    from_hook: bool = False


class BranchSummaryEntry(_Entry, frozen=True, kw_only=True, tag="branch_summary", omit_defaults=True):
    from_id: str
    summary: str
    details: Any = None
    from_hook: bool = False


class CustomEntry(_Entry, frozen=True, kw_only=True, tag="custom", omit_defaults=True):
    """State of an extension; the model never sees it."""

    custom_type: str
    data: Any = None


class CustomMessageEntry(_Entry, frozen=True, kw_only=True, tag="custom_message", omit_defaults=True):
    custom_type: str
    content: str | list[UserBlock]
    display: bool
    details: Any = None


class LabelEntry(_Entry, frozen=True, kw_only=True, tag="label", omit_defaults=True):
    """Names an entry; without ``label`` it takes the name away."""

    target_id: str
    label: str | None = None


class SessionInfoEntry(_Entry, frozen=True, kw_only=True, tag="session_info"):
    name: str


class UnknownEntry(_Entry, frozen=True, kw_only=True, tag="unknown"):
    """An entry of a kind or form that this version does not know, kept as the ``line`` it came in. The model does not read it."""

    line: str


SessionEntry = (
    MessageEntry
    | ModelChangeEntry
    | ThinkingLevelChangeEntry
    | CompactionEntry
    | BranchSummaryEntry
    | CustomEntry
    | CustomMessageEntry
    | LabelEntry
    | SessionInfoEntry
    | UnknownEntry
)


class TreeNode(msgspec.Struct, kw_only=True):
    """An entry and what followed it, in the order it came; ``label`` is its name, None where it has none."""

    entry: SessionEntry
    label: str | None
    children: "list[TreeNode]"


class SessionHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="type", tag="session"):
    """The first line of a session file. ``cwd`` is informational."""

    version: int
    id: str
    timestamp: str
    cwd: str
    parent_session: str | None = None


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a list shows it."""

    id: str
    scope: str
    name: str
    created_at: datetime
    modified_at: datetime
    message_count: int
    first_message: str


class SessionLines(msgspec.Struct, frozen=True, kw_only=True):
    """A session as the lines of its file, without their ends: first the header, then an entry each.

    A line is JSON of the present format. It may hold more than the entry that is read from it: fields of other programs, numbers in another
    form, escaped lone surrogates.
    """

    header: str
    entries: Sequence[str]
    leaf: str | None


class SessionStore(Protocol):
    """Contract.

    - A session belongs to one ``scope`` (the text of a chat's address); every call that names a scope sees that scope's sessions alone.
    - ``append`` is atomic and durable when it returns: all entries, the new leaf and, where given, ``also`` in the same transaction. It
      raises KeyError for a session that is not there and never changes an entry that is.
    - ``also`` needs a store that lives in the database; other stores raise ValueError.
    - ``set_leaf`` moves the leaf without an entry; None means before the first.
    - ``load`` gives header, entries in the order they were appended, and the leaf; one query for the entries. The header's id is the
      session's, whatever the line says.
    - ``current`` is the session that a scope talks in, the one last made current; None where there is none.
    - ``summary`` is what ``list`` has of one session, whatever its scope and age; None where there is none.
    - ``lines`` gives back the very lines that ``take_in`` was given; an entry that was appended is the line that pi would read.
    - ``take_in`` adds a session from its lines, as a whole or not at all. ``session_id`` counts and not the one in the header; it raises
      ValueError when it is taken. The session is nobody's current one.
    - ``replace`` puts lines in the place of all that is stored of a session, as a whole or not at all. It raises ValueError when the
      session is no longer what ``was`` says, so that nothing that was appended meanwhile is lost.
    - ``delete`` removes the session and its entries for good; deleting what is not there is False.
    """

    async def create(self, scope: str, header: SessionHeader, *, make_current: bool = True) -> None: ...

    async def append(
        self,
        session_id: str,
        entries: Sequence[SessionEntry],
        *,
        leaf: str | None,
        also: TransactionWork | None = None,
    ) -> None: ...

    async def set_leaf(self, session_id: str, leaf: str | None) -> None: ...

    async def load(self, session_id: str) -> tuple[SessionHeader, list[SessionEntry], str | None]: ...

    async def current(self, scope: str) -> str | None: ...

    async def make_current(self, scope: str, session_id: str) -> None: ...

    async def list(self, scope: str | None = None, *, limit: int = 100) -> list[SessionSummary]: ...

    async def summary(self, session_id: str) -> SessionSummary | None: ...

    async def lines(self, session_id: str) -> SessionLines: ...

    async def take_in(self, scope: str, session_id: str, lines: SessionLines) -> None: ...

    async def replace(self, session_id: str, lines: SessionLines, *, was: SessionLines) -> None: ...

    async def delete(self, session_id: str) -> bool: ...
