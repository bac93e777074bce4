"""The whole configuration."""

from pathlib import Path
from typing import Self

import msgspec

from bot.config.agent_sections import (
    ApprovalsSection,
    CalendarSection,
    CompactionSection,
    LanguageServerSection,
    McpSection,
    MemorySection,
    ModelsSection,
    ProviderSection,
    RetrySection,
    ToolsSection,
    VoiceSection,
)
from bot.config.chat_sections import A2aSection, AccessSection, ChannelsSection, ChatSection
from bot.config.host_sections import (
    ExtensionsSection,
    HeartbeatSection,
    HookSection,
    HostSection,
    HttpSection,
    ObservabilitySection,
    ProcessesSection,
    SchedulerSection,
    Section,
    StorageSection,
    WebhookSection,
)

__all__ = ["Config", "Sections"]

_SQLITE = "sqlite:///"


class Sections(Section, frozen=True, kw_only=True):
    """All tables of ``pumice.toml``."""

    host: HostSection = HostSection()
    http: HttpSection = HttpSection()
    storage: StorageSection = StorageSection()
    models: ModelsSection = ModelsSection()
    providers: dict[str, ProviderSection] = msgspec.field(default_factory=dict)
    access: AccessSection = AccessSection()
    channels: ChannelsSection = ChannelsSection()
    chat: ChatSection = ChatSection()
    compaction: CompactionSection = CompactionSection()
    retry: RetrySection = RetrySection()
    tools: ToolsSection = ToolsSection()
    approvals: ApprovalsSection = ApprovalsSection()
    processes: ProcessesSection = ProcessesSection()
    scheduler: SchedulerSection = SchedulerSection()
    heartbeat: HeartbeatSection = HeartbeatSection()
    memory: MemorySection = MemorySection()
    voice: VoiceSection = VoiceSection()
    calendar: CalendarSection = CalendarSection()
    mcp: McpSection = McpSection()
    a2a: A2aSection = A2aSection()
    extensions: ExtensionsSection = ExtensionsSection()
    hooks: tuple[HookSection, ...] = ()
    webhooks: dict[str, WebhookSection] = msgspec.field(default_factory=dict)
    language_servers: dict[str, LanguageServerSection] = msgspec.field(default_factory=dict)
    observability: ObservabilitySection = ObservabilitySection()


class Config(Sections, frozen=True, kw_only=True):
    """A configuration that was read and found good.

    ``source`` is the file, None where there is none. ``base`` is the folder that relative paths are relative to. ``secrets`` holds every
    resolved secret with its key, ``secret_files`` the files that some came from. ``warnings`` are worth telling and stop nothing.
    """

    source: Path | None
    base: Path
    secrets: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    secret_files: tuple[Path, ...] = ()

    @property
    def database_path(self) -> Path:
        """The file of the embedded database."""
        if self.storage.url:
            return self.base / self.storage.url.removeprefix(_SQLITE)
        return self.host.data_dir / "state.db"

    def with_data_dir(self, data_dir: Path) -> Self:
        """The same with another data directory, as a command line names it."""
        return msgspec.structs.replace(self, host=msgspec.structs.replace(self.host, data_dir=data_dir))
