"""What a session is told and what a run comes to."""

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from features.contracts.messages import AssistantMessage, ImageBlock, Usage
from features.contracts.sessions import SessionEntry, TransactionWork
from features.contracts.stream import FailureKind

__all__ = ["EntryJournal", "Prompt", "RunFailure", "RunOutcome", "Spending"]


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person says to a session.

    ``source_ids`` are the host's ids of the messages it is made of; the entry that holds the prompt carries them, so that a message is
    never put in twice. ``timestamp`` is Unix ms, the time it was sent. ``owner`` says whether an owner of the host said it.
    """

    text: str
    images: tuple[ImageBlock, ...] = ()
    source_ids: tuple[str, ...] = ()
    timestamp: int | None = None
    owner: bool = False


class RunFailure(msgspec.Struct, frozen=True, kw_only=True):
    kind: FailureKind
    message: str


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    ``text`` is what the person is owed: the texts of its answers (assistant messages without tool calls), joined by blank lines; after an
    abort or a failure, what had arrived. ``source_ids`` are all the messages it consumed, those that joined it included.
    """

    run_id: str
    outcome: Literal["success", "error", "aborted"]
    text: str
    source_ids: tuple[str, ...]
    usage: Usage
    failure: RunFailure | None = None


EntryJournal = Callable[[str, SessionEntry, tuple[str, ...]], TransactionWork | None]
"""Called on the loop before an entry is stored, with the run's id, the entry and the prompt's ``source_ids`` (empty for other entries).

What it returns joins the transaction that stores the entry. The host writes its own books this way: a prompt's messages are marked as
consumed, and an answer is in the outbox, in the same commit as the entry itself.
"""


class Spending(Protocol):
    """What a session may spend. Contract.

    - ``refusal`` is asked before every model call; a text, in words for the person, forbids the call.
    - ``charge`` gets every call whose answer is no entry of the session (a summary), also one that failed, and returns when it is on the
      disk. The others are counted by the journal, together with their entry.
    """

    async def refusal(self) -> str | None: ...

    async def charge(self, message: AssistantMessage) -> None: ...
