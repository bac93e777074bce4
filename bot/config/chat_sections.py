"""The sections about chats: who may talk, through which channels, and how answers appear."""

from typing import Literal

import msgspec

from bot.config.host_sections import Section
from bot.config.values import Count, PositiveCount, Seconds, Secret

__all__ = [
    "A2aCallerSection",
    "A2aSection",
    "AccessSection",
    "ChannelsSection",
    "ChatSection",
    "SlackSection",
    "TelegramSection",
    "WebSection",
]


class AccessSection(Section, frozen=True, kw_only=True):
    """``owners`` and ``allow`` are people, ``groups`` are chats; an empty list is nobody."""

    mode: Literal["pairing", "allowlist", "open"] = "pairing"
    confirm_open: bool = False
    owners: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    group_trigger: Literal["mention", "always"] = "mention"


class TelegramSection(Section, frozen=True, kw_only=True):
    """Enabled by its token. ``max_sends_per_second`` 0 keeps no pace and only reacts to the platform's refusals."""

    token: Secret | None = None
    api_url: str = "https://api.telegram.org"
    mode: Literal["polling", "webhook"] = "polling"
    webhook_secret: Secret | None = None
    max_sends_per_second: Seconds = 30.0


class SlackSection(Section, frozen=True, kw_only=True):
    """Enabled by its bot token."""

    bot_token: Secret | None = None
    app_token: Secret | None = None
    signing_secret: Secret | None = None
    mode: Literal["socket", "http"] = "socket"
    api_url: str = "https://slack.com/api/"


class WebSection(Section, frozen=True, kw_only=True):
    enabled: bool = True


class ChannelsSection(Section, frozen=True, kw_only=True):
    telegram: TelegramSection = TelegramSection()
    slack: SlackSection = SlackSection()
    web: WebSection = WebSection()


class ChatSection(Section, frozen=True, kw_only=True):
    """``idle_evict_minutes`` 0 keeps idle sessions in memory."""

    busy: Literal["steer", "follow_up", "interrupt", "collect"] = "steer"
    stream: bool = True
    show_tools: Literal["off", "status", "full"] = "status"
    idle_evict_minutes: Count = 30
    max_turns: PositiveCount = 100


class A2aCallerSection(Section, frozen=True, kw_only=True):
    """``tools`` are what the caller may use beyond the read-only ones."""

    token: Secret
    tools: tuple[str, ...] = ()


class A2aSection(Section, frozen=True, kw_only=True):
    enabled: bool = False
    callers: dict[str, A2aCallerSection] = msgspec.field(default_factory=dict)
