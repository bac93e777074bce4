"""What a session and its runs share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from features.agent.listeners import Listeners
from features.agent.model_choice import ModelChoice
from features.agent.options import RetryOptions
from features.agent.prompt_queues import PromptQueues
from features.agent.redaction import Redaction
from features.agent.transcript import Transcript
from features.compaction import Compactor
from features.contracts.agent import Spending
from features.contracts.clock import Clock
from features.contracts.models import Model, Provider, ThinkingLevel
from features.contracts.tools import ToolContext
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolRegistry

__all__ = ["ModelSource", "SessionServices", "SessionState"]


class ModelSource(Protocol):
    """As much of a ``ModelRegistry`` as a session needs."""

    def resolve(self, reference: str) -> Model: ...

    def provider(self, name: str) -> Provider: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionServices:
    """What every session of a host is given. ``max_turns`` bounds the turns that a run takes without a word from a person."""

    models: ModelSource
    prompts: SystemPromptBuilder
    redaction: Redaction
    clock: Clock
    ids: Callable[[], str]
    random: Random
    retry: RetryOptions
    max_turns: int
    compactor: Compactor
    choice: ModelChoice


@dataclass(slots=True, kw_only=True)
class SessionState:
    """One conversation between and during its runs. A change of ``model`` or ``thinking`` counts from the next model call.

    ``overhead`` is the size of system prompt and tools at the last model call, in tokens.
    """

    services: SessionServices
    transcript: Transcript
    tools: ToolRegistry
    tool_context: ToolContext
    chat: str
    model: Model
    thinking: ThinkingLevel
    queues: PromptQueues
    listeners: Listeners
    spending: Spending | None = None
    keep_verbatim: Callable[[], Sequence[str]] | None = None
    overhead: int = 0
