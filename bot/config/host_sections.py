"""The sections about the host itself: where it keeps things, who reaches it, what it watches."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from bot.config.values import Count, Port, PositiveCount, Seconds, Secret

__all__ = [
    "ExtensionsSection",
    "HeartbeatSection",
    "HookSection",
    "HostSection",
    "HttpSection",
    "ObservabilitySection",
    "ProcessesSection",
    "SchedulerSection",
    "Section",
    "StorageSection",
    "WebhookSection",
]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of ``pumice.toml``; the attributes are its keys."""


class HostSection(Section, frozen=True, kw_only=True):
    """``default_time_zone`` is the machine's where the file names none."""

    data_dir: Path = Path("data")
    default_time_zone: str = ""
    log_level: Literal["debug", "info", "warning", "error", "critical"] = "info"


class HttpSection(Section, frozen=True, kw_only=True):
    """``token`` is None where the host is to make one. Port 0 takes any free one."""

    host: str = "127.0.0.1"
    port: Port = 8765
    public_url: str = ""
    token: Secret | None = None


class StorageSection(Section, frozen=True, kw_only=True):
    """Empty ``url``: ``state.db`` in the data directory."""

    url: str = ""


class ProcessesSection(Section, frozen=True, kw_only=True):
    inherit: Literal["safe", "all"] = "safe"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ("*TOKEN*", "*KEY*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*", "*_DSN", "PUMICE_*")
    secret_values: tuple[Secret, ...] = ()
    harden: bool = True
    sandbox: Literal["auto", "bubblewrap", "none"] = "auto"
    sandbox_network: bool = True


class ExtensionsSection(Section, frozen=True, kw_only=True):
    """``config`` holds each extension's own table, by the extension's name, as it was written, with secrets for their references."""

    paths: tuple[Path, ...] = ()
    disabled: tuple[str, ...] = ()
    config: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)


class HookSection(Section, frozen=True, kw_only=True):
    """Exactly one of ``command`` and ``url``."""

    event: str
    command: tuple[str, ...] = ()
    url: str = ""
    timeout_s: Seconds = 5.0


class WebhookSection(Section, frozen=True, kw_only=True):
    secret: Secret
    chat: str
    prompt: str


class ObservabilitySection(Section, frozen=True, kw_only=True):
    otlp_endpoint: str = ""
    prometheus: bool = True


class SchedulerSection(Section, frozen=True, kw_only=True):
    max_jobs_per_chat: Count = 50
    min_interval_s: PositiveCount = 60
    catch_up: Literal["once", "skip"] = "once"
    concurrency: PositiveCount = 4
    watcher_timeout_s: Seconds = 60.0
    quiet_hours: str = ""


class HeartbeatSection(Section, frozen=True, kw_only=True):
    every_minutes: Count = 0
    check: str = ""
