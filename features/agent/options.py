"""What a session and its runs can be told."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from features.contracts.agent import EntryJournal, SessionHost, Spending
from features.contracts.extensions import ExtensionSpec
from features.contracts.models import ThinkingLevel
from features.contracts.processes import ProcessRunner
from features.contracts.tools import ToolContext
from features.contracts.ui import UserInterface
from features.skills import PlaceSkills
from features.tools import ToolRegistry

__all__ = ["AgentSessionOptions", "QueueMode", "RetryOptions"]

QueueMode = Literal["one", "all"]
"""How much of a queue joins at a time: the oldest message, so that each gets an answer of its own, or everything that waits."""


class RetryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how soon a model call that failed for a passing reason is repeated.

    ``max_attempts`` counts the repetitions of one call; 0 turns them off. The wait starts at ``base_delay_s`` and doubles. A service may
    ask for a longer one, up to ``max_delay_s``; beyond it the call fails at once.
    """

    max_attempts: int = 3
    base_delay_s: float = 2.0
    max_delay_s: float = 60.0


class AgentSessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which session to open, and what belongs to it.

    ``session_id`` None opens the scope's current session and makes one where there is none; ``new`` makes one in any case, called
    ``name``. ``model`` and ``thinking`` serve a session that has none of its own yet, ``spare_model`` one whose model is gone where
    ``model`` is too. ``chat`` is a sentence about the chat for the system prompt. ``extensions`` are activated in their order. In
    ``tool_context`` the session's id is filled in by the factory, and whether an owner speaks by each run. ``keep_verbatim`` gives texts
    that stand word for word in every summary, as they are by then: what is open and must not be forgotten. ``skills`` are what the place
    can use; ``host_instructions`` and ``host_memory`` are files that the system prompt shows beside those of the workspace.

    ``ui`` asks the person on behalf of extensions, ``host`` does around the session what they want done, ``processes`` starts what they
    start, ``host_commands`` are names that no command of theirs can have. ``began`` says how the session comes to be opened.
    """

    scope: str
    tools: ToolRegistry
    tool_context: ToolContext
    chat: str
    model: str
    spare_model: str = ""
    session_id: str | None = None
    new: bool = False
    name: str = ""
    skills: PlaceSkills | None = None
    host_instructions: Path | None = None
    host_memory: Path | None = None
    thinking: ThinkingLevel = "off"
    journal: EntryJournal | None = None
    spending: Spending | None = None
    keep_verbatim: Callable[[], Sequence[str]] | None = None
    extensions: tuple[ExtensionSpec, ...] = ()
    ui: UserInterface | None = None
    host: SessionHost | None = None
    processes: ProcessRunner | None = None
    host_commands: tuple[str, ...] = ()
    began: Literal["startup", "new", "resume", "fork", "reload"] = "startup"
    steering_mode: QueueMode = "one"
    follow_up_mode: QueueMode = "one"
