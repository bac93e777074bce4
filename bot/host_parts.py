"""The parts that a host is composed of, as its configuration wants them."""

import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Literal

from bot.access import Access
from bot.config import Config
from bot.config.chat_sections import SlackSection
from bot.config.host_sections import HookSection
from bot.delivery.place_log import DatabasePlaceLog
from bot.settings import ChatSettings
from bot.zones import machine_zone
from channels.web import UploadStore, WebChannel
from features.agent import AgentSessionFactory, RetryOptions
from features.compaction import CompactionOptions
from features.contracts.chat import Address, ChatChannel, ChatSender, WebhookChannel
from features.contracts.clock import Clock
from features.contracts.database import Database
from features.contracts.errors import OperatorMustAct
from features.contracts.memory import MEMORY_FILE
from features.contracts.processes import ProcessSpawnHook, SecretRedactor
from features.contracts.sessions import SessionStore
from features.contracts.voice import Transcriber
from features.extensions import ExtensionCatalogue, ExtensionChoices, ExtensionLoader, session_spawn_hook
from features.hooks import Hook, Hooks
from features.memory import Memory
from features.models import ModelOverride, ModelRegistry, ProviderConfig
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy
from features.scheduler import SchedulerOptions
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolOptions, ToolRegistry
from features.voice import CommandOptions, CommandTranscriber, ServiceOptions, ServiceTranscriber
from workspaces import Workspaces

if TYPE_CHECKING:
    from channels.slack import SlackOptions
    from channels.telegram import TelegramOptions

__all__ = [
    "BUILT_IN",
    "default_settings",
    "hook_argv",
    "make_channels",
    "make_extensions",
    "make_hooks",
    "make_memory",
    "make_models",
    "make_processes",
    "make_sessions",
    "make_tools",
    "make_transcriber",
    "scheduler_options",
    "webhooks_of",
]

_MODEL_CALLS_AT_ONCE = 256
CONSOLE = "console"
BUILT_IN = ("approvals", "hooks", "pins", "scheduler")
"""Names of the host's own extensions, which no other may take."""


def default_settings(config: Config) -> ChatSettings:
    """What a chat that has set nothing gets."""
    return ChatSettings(
        model=config.models.default,
        thinking=config.models.thinking,
        time_zone=config.host.default_time_zone or machine_zone(os.environ),
        busy=config.chat.busy,
        verbose=config.chat.show_tools,
        stream=config.chat.stream,
    )


def make_models(config: Config, *, clock: Clock, ids: Callable[[], str]) -> ModelRegistry:
    providers = [
        ProviderConfig(
            name=name,
            kind=section.kind,
            api_key=section.api_key,
            base_url=section.base_url or None,
            command=section.command or None,
            models=tuple(
                ModelOverride(
                    id=model.id,
                    context_window=model.context_window,
                    max_output=model.max_output,
                    input=model.input,
                    reasoning=model.reasoning,
                    file=model.file,
                )
                for model in section.models
            ),
        )
        for name, section in config.providers.items()
    ]
    return ModelRegistry(providers, clock=clock, ids=ids, max_concurrency=_MODEL_CALLS_AT_ONCE)


def make_sessions(
    config: Config,
    store: SessionStore,
    models: ModelRegistry,
    redactor: SecretRedactor,
    *,
    clock: Clock,
    ids: Callable[[], str],
    random: Random,
) -> AgentSessionFactory:
    retry = config.retry
    return AgentSessionFactory(
        store=store,
        models=models,
        prompts=SystemPromptBuilder(),
        redactor=redactor,
        clock=clock,
        ids=ids,
        random=random,
        retry=RetryOptions(max_attempts=retry.max_attempts, base_delay_s=retry.base_delay_s, max_delay_s=retry.max_delay_s),
        max_turns=config.chat.max_turns,
        compaction=CompactionOptions(
            enabled=config.compaction.enabled,
            reserve_tokens=config.compaction.reserve_tokens,
            keep_recent_tokens=config.compaction.keep_recent_tokens,
        ),
        fallbacks=config.models.fallbacks,
    )


def make_hooks(config: Config, processes: ProcessRunner, redactor: SecretRedactor, *, clock: Clock, ids: Callable[[], str]) -> Hooks:
    hooks = [
        Hook(event=hook.event, argv=hook_argv(config, hook), url=hook.url, timeout=timedelta(seconds=hook.timeout_s))
        for hook in config.hooks
    ]
    return Hooks(hooks, processes=processes, redactor=redactor, clock=clock, ids=ids)


def hook_argv(config: Config, hook: HookSection) -> tuple[str, ...]:
    """A relative path is relative to the configuration; a bare name is looked for on the PATH."""
    if not hook.command or "/" not in hook.command[0]:
        return hook.command
    return (str(config.base / hook.command[0]), *hook.command[1:])


def make_extensions(config: Config, database: Database, *, clock: Clock) -> ExtensionCatalogue:
    """Without anything loaded yet."""
    section = config.extensions
    loader = ExtensionLoader(config=section.config, disabled=section.disabled, taken=BUILT_IN)
    return ExtensionCatalogue(loader, ExtensionChoices(database, clock), paths=section.paths)


def make_memory(config: Config, database: Database, access: Access, workspaces: Workspaces) -> Memory:
    """What the page and the terminal say is an owner's; elsewhere a place is, if it is the private chat with one."""
    return Memory(
        DatabasePlaceLog(database),
        folder=workspaces.folder,
        host_file=config.host.data_dir / MEMORY_FILE if config.memory.host_wide else None,
        is_owners=lambda place: place.channel in ("web", CONSOLE) or access.is_owner(str(place)),
    )


def make_processes(config: Config, redactor: SecretRedactor, sandbox: ProcessSpawnHook | None) -> ProcessRunner:
    section = config.processes
    policy = ProcessSpawnPolicy(
        ProcessPolicyOptions(inherit=section.inherit, allow=section.allow, deny=section.deny),
        redactor=redactor,
        environ=os.environ,
        hooks=(*(() if sandbox is None else (sandbox,)), session_spawn_hook),
    )
    return ProcessRunner(policy, redactor)


def make_tools(
    config: Config, processes: ProcessRunner, memory: Memory, *, sandboxed: bool
) -> Callable[[Address, ChatSender], ToolRegistry]:
    """What makes the tools of one session of a place."""

    def tools(place: Address, send: ChatSender) -> ToolRegistry:
        return ToolRegistry.built_in(
            ToolOptions(
                processes=processes,
                send=send,
                sandboxed=sandboxed,
                disabled=config.tools.disabled,
                bash_timeout_s=config.tools.bash_timeout_s,
                max_result_bytes=config.tools.max_result_bytes,
                max_result_lines=config.tools.max_result_lines,
                web_max_bytes=config.tools.web_fetch.max_bytes,
                web_timeout_s=config.tools.web_fetch.timeout_s,
                further=tuple(memory.tools(place)),
            )
        )

    return tools


def scheduler_options(config: Config, *, sandboxed: bool) -> SchedulerOptions:
    """A script may do what bash may: where that is held back or switched off, none is put up or run."""
    section = config.scheduler
    scripts: Literal["everybody", "owners", "nobody"] = "everybody" if sandboxed else "owners"
    return SchedulerOptions(
        max_jobs_per_chat=section.max_jobs_per_chat,
        min_interval=timedelta(seconds=section.min_interval_s),
        catch_up=section.catch_up,
        concurrency=section.concurrency,
        script_timeout=timedelta(seconds=section.watcher_timeout_s),
        quiet_hours=section.quiet_hours,
        scripts="nobody" if "bash" in config.tools.disabled or config.approvals.bash == "deny" else scripts,
    )


def make_transcriber(config: Config, processes: ProcessRunner) -> Transcriber | None:
    """What listens to voice messages, None where nothing is set up to."""
    voice = config.voice
    if voice.command:
        return CommandTranscriber(CommandOptions(command=voice.command), processes)
    if not voice.transcribe:
        return None
    name, _, model = voice.transcribe.partition("/")
    provider = config.providers[name]
    return ServiceTranscriber(ServiceOptions(model=model, api_key=provider.api_key, base_url=provider.base_url))


def make_channels(
    config: Config,
    uploads: UploadStore,
    wanted: Iterable[str | ChatChannel] | None,
    *,
    doing: Callable[[Address, str | None], None],
    clock: Clock,
    random: Random,
) -> dict[str, ChatChannel]:
    """The channels that are at work, by name.

    Args:
        wanted: names, or channels of one's own; None for what the configuration enables, and the terminal.
        doing: told what goes on in a chat that is read from event streams.
    """
    channels: dict[str, ChatChannel] = {}
    section = config.channels
    names: Iterable[str | ChatChannel] = wanted if wanted is not None else _enabled(config)
    for name in names:
        if not isinstance(name, str):
            channels[name.name] = name
        elif name == "telegram":
            from channels.telegram import TelegramChannel

            channels[name] = TelegramChannel(_telegram_options(config), clock=clock, random=random)
        elif name == "slack":
            from channels.slack import SlackChannel

            channels[name] = SlackChannel(_slack_options(section.slack), clock=clock, random=random)
        else:
            channels[name] = WebChannel(name, uploads=uploads, doing=doing, clock=clock)
    return channels


def webhooks_of(channels: Iterable[ChatChannel]) -> dict[str, WebhookChannel]:
    """The channels whose platforms call this host, by path."""
    return {path: channel for channel in channels if isinstance(channel, WebhookChannel) and (path := channel.webhook_path) is not None}


def _telegram_options(config: Config) -> "TelegramOptions":
    from channels.telegram import TelegramOptions, WebhookAddress

    section = config.channels.telegram
    if section.token is None:
        raise OperatorMustAct("the telegram channel is wanted, and channels.telegram.token is not set. Set it.")
    webhook = None
    if section.mode == "webhook":
        assert section.webhook_secret is not None  # the configuration was refused without one
        webhook = WebhookAddress(f"{config.http.public_url.rstrip('/')}/telegram/webhook", section.webhook_secret)
    return TelegramOptions(token=section.token, api_url=section.api_url, max_sends_per_second=section.max_sends_per_second, webhook=webhook)


def _slack_options(section: SlackSection) -> "SlackOptions":
    from channels.slack import SlackOptions

    if section.bot_token is None:
        raise OperatorMustAct("the slack channel is wanted, and channels.slack.bot_token is not set. Set it.")
    return SlackOptions(
        bot_token=section.bot_token,
        app_token=section.app_token or "",
        signing_secret=section.signing_secret or "",
        mode=section.mode,
        api_url=section.api_url,
    )


def _enabled(config: Config) -> list[str]:
    enabled = [CONSOLE]
    if config.channels.web.enabled:
        enabled.append("web")
    if config.channels.telegram.token is not None:
        enabled.append("telegram")
    if config.channels.slack.bot_token is not None:
        enabled.append("slack")
    return enabled
