"""The sections about what an agent is made of: models, limits, tools, and the services that it can call."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from bot.config.host_sections import Section
from bot.config.values import Count, Policy, PositiveCount, Seconds, Secret, SecretOrText
from features.contracts.models import ThinkingLevel

if TYPE_CHECKING:
    from features.approvals import ApprovalOptions

__all__ = [
    "ApprovalsSection",
    "CalendarSection",
    "CompactionSection",
    "LanguageServerSection",
    "McpSection",
    "McpServerSection",
    "MemorySection",
    "ModelsSection",
    "ProviderModelSection",
    "ProviderSection",
    "RetrySection",
    "ToolsSection",
    "VoiceSection",
]

ProviderKind = Literal["anthropic", "openai", "openai-compatible", "google", "claude-code", "local", "offline"]


class ModelsSection(Section, frozen=True, kw_only=True):
    """References are ``provider/model``. ``budget_usd_per_day`` is per chat; 0 is none."""

    default: str = "offline/assistant"
    fallbacks: tuple[str, ...] = ()
    thinking: ThinkingLevel = "off"
    budget_usd_per_day: Seconds = 0.0


class ProviderModelSection(Section, frozen=True, kw_only=True):
    """A model that the catalogue does not know, or what it has wrong; None keeps the catalogue's word. Sizes are tokens.

    ``file`` is a local model's GGUF file.
    """

    id: str
    context_window: PositiveCount | None = None
    max_output: PositiveCount | None = None
    input: tuple[Literal["text", "image"], ...] | None = None
    reasoning: bool | None = None
    file: Path | None = None


class ProviderSection(Section, frozen=True, kw_only=True):
    """``kind`` may be left out where the provider's name is one. ``command`` is Claude Code's program, where it is not on the PATH."""

    kind: ProviderKind
    api_key: Secret | None = None
    base_url: str = ""
    command: str = ""
    models: tuple[ProviderModelSection, ...] = ()


class CompactionSection(Section, frozen=True, kw_only=True):
    enabled: bool = True
    reserve_tokens: Count = 16384
    keep_recent_tokens: Count = 20000


class RetrySection(Section, frozen=True, kw_only=True):
    max_attempts: PositiveCount = 3
    base_delay_s: Seconds = 2.0
    max_delay_s: Seconds = 60.0


class WebFetchSection(Section, frozen=True, kw_only=True):
    max_bytes: PositiveCount = 5_000_000
    timeout_s: Seconds = 20.0


class ToolsSection(Section, frozen=True, kw_only=True):
    disabled: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()
    bash_timeout_s: Seconds = 120.0
    max_result_bytes: PositiveCount = 51200
    max_result_lines: PositiveCount = 2000
    web_fetch: WebFetchSection = WebFetchSection()


class ApprovalsSection(Section, frozen=True, kw_only=True):
    """Beside these keys, every other one is the name of a tool with that tool's policy; they are in ``tools``."""

    OTHER_KEYS: ClassVar[str] = "tools"
    OTHER_NAMES: ClassVar[tuple[str, ...]] = (
        "calendar",
        "edit",
        "find",
        "grep",
        "history",
        "ls",
        "mcp",
        "memory",
        "read",
        "schedule",
        "send",
        "subagent",
        "web_fetch",
        "write",
    )

    bash: Policy = "allow"
    allow_commands: tuple[str, ...] = ()
    timeout_s: Seconds = 300.0
    tools: dict[str, Policy] = msgspec.field(default_factory=dict)

    def options(self) -> "ApprovalOptions":
        """The section as the approvals want it.

        Raises:
            ValueError: it makes no sense; the text begins with the key.
        """
        from features.approvals import ApprovalOptions

        return ApprovalOptions(tools={"bash": self.bash, **self.tools}, allow_commands=self.allow_commands, timeout_s=self.timeout_s)


class MemorySection(Section, frozen=True, kw_only=True):
    host_wide: bool = False


class VoiceSection(Section, frozen=True, kw_only=True):
    transcribe: str = ""
    command: tuple[str, ...] = ()


class GoogleCalendarSection(Section, frozen=True, kw_only=True):
    client_id: str = ""
    client_secret: Secret | None = None
    auth_url: str = "https://accounts.google.com/o/oauth2/v2/auth"
    token_url: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address, no secret
    revoke_url: str = "https://oauth2.googleapis.com/revoke"
    api_url: str = "https://www.googleapis.com/"


class CalendarSection(Section, frozen=True, kw_only=True):
    backend: Literal["local", "google"] = "local"
    google: GoogleCalendarSection = GoogleCalendarSection()


class McpServerSection(Section, frozen=True, kw_only=True):
    """``command`` starts a server on this machine, ``url`` reaches one over HTTP; exactly one of them."""

    command: tuple[str, ...] = ()
    url: str = ""
    headers: dict[str, SecretOrText] = msgspec.field(default_factory=dict)
    enabled_tools: tuple[str, ...] = ()
    timeout_s: Seconds = 60.0


class McpSection(Section, frozen=True, kw_only=True):
    servers: dict[str, McpServerSection] = msgspec.field(default_factory=dict)


class LanguageServerSection(Section, frozen=True, kw_only=True):
    command: tuple[str, ...]
    extensions: tuple[str, ...]
