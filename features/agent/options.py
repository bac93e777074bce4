"""What a session and its runs can be told."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from features.contracts.agent import EntryJournal, Spending
from features.contracts.models import ThinkingLevel
from features.contracts.tools import ToolContext
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
    ``name``. ``model`` and ``thinking`` serve a session that has none of its own yet. ``chat`` is a sentence about the chat for the system
    prompt. In ``tool_context`` the session's id is filled in by the factory, and whether an owner speaks by each run. ``keep_verbatim``
    gives texts that stand word for word in every summary, as they are by then: what is open and must not be forgotten.
    """

    scope: str
    tools: ToolRegistry
    tool_context: ToolContext
    chat: str
    model: str
    session_id: str | None = None
    new: bool = False
    name: str = ""
    thinking: ThinkingLevel = "off"
    journal: EntryJournal | None = None
    spending: Spending | None = None
    keep_verbatim: Callable[[], Sequence[str]] | None = None
    steering_mode: QueueMode = "one"
    follow_up_mode: QueueMode = "one"
