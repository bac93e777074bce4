"""What a session and its runs share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from features.agent.listeners import Listeners
from features.agent.model_choice import ModelChoice
from features.agent.options import RetryOptions
from features.agent.prompt_queues import PromptQueues
from features.agent.redaction import Redaction
from features.agent.session_models import ModelSource
from features.agent.transcript import Transcript
from features.compaction import Compactor
from features.contracts.agent import Spending
from features.contracts.clock import Clock
from features.contracts.models import Model, ThinkingLevel
from features.contracts.tools import ToolContext
from features.extensions import ExtensionRunner
from features.skills import PlaceSkills
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolRegistry

__all__ = ["SessionServices", "SessionState"]


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

    ``overhead`` is the size of system prompt and tools at the last model call, in tokens; ``system_prompt`` is what it was. ``extensions``
    is there once the session has been put together.
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
    skills: PlaceSkills | None = None
    host_instructions: Path | None = None
    host_memory: Path | None = None
    overhead: int = 0
    system_prompt: str = ""
    extensions: ExtensionRunner = field(init=False)
