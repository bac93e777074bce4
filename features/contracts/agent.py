"""What a session is told and what a run comes to."""

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from features.contracts.messages import AssistantMessage, CustomMessage, ImageBlock, Usage
from features.contracts.sessions import SessionEntry, TransactionWork
from features.contracts.stream import FailureKind

__all__ = ["EntryJournal", "Heard", "Prompt", "RunFailure", "RunOutcome", "SessionHost", "Spending"]


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person says to a session.

    ``source_ids`` are the host's ids of the messages it is made of; the entry that holds the prompt carries them, so that a message is
    never put in twice. ``timestamp`` is Unix ms, the time it was sent. ``owner`` says whether an owner of the host said it.
    ``heard`` says that the extensions have had their say about it (``AgentSession.hear``). ``custom`` is an extension's message, which is
    stored in place of the text. A prompt of an extension without anything in it asks for a run with what is in the conversation already.
    ``expand``: the text may call a skill or a template, and what it calls is put in its place. ``preface`` and ``postscript`` are what the
    host says around the text; they are never expanded.
    """

    text: str
    preface: str = ""
    postscript: str = ""
    expand: bool = False
    images: tuple[ImageBlock, ...] = ()
    source_ids: tuple[str, ...] = ()
    timestamp: int | None = None
    owner: bool = False
    source: Literal["person", "extension", "job"] = "person"
    heard: bool = False
    custom: CustomMessage | None = None

    @property
    def empty(self) -> bool:
        return not (self.text or self.images or self.custom)


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as the extensions leave it. One that was ``handled`` starts no run; ``reply`` is then what the person is told."""

    prompt: Prompt
    handled: bool = False
    reply: str | None = None


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
consumed, and an answer is in the outbox, in the same commit as the entry itself. A custom message that people are to see comes with the
content that they read: one text, made by its renderer. One that is stored outside of a run comes with an empty run's id.
"""


class SessionHost(Protocol):
    """Whoever holds a session, for what an extension wants done around it.

    - ``prompt`` returns when the prompt is accepted; its run begins once nothing else goes on, and is answered like any other.
    - The others settle what goes on first; the session that asked is closed by them.
    """

    async def prompt(self, prompt: Prompt, *, session_id: str, extension: str, id: str) -> None: ...

    async def new_session(self, name: str) -> str: ...

    async def switch_session(self, session_id: str) -> None: ...

    async def reload(self) -> None: ...


class Spending(Protocol):
    """What a session may spend. Contract.

    - ``refusal`` is asked before every model call; a text, in words for the person, forbids the call.
    - ``charge`` gets every call whose answer is no entry of the session (a summary), also one that failed, and returns when it is on the
      disk. The others are counted by the journal, together with their entry.
    """

    async def refusal(self) -> str | None: ...

    async def charge(self, message: AssistantMessage) -> None: ...
