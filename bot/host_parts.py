"""The parts that a host is composed of, as its configuration wants them."""

import os
from collections.abc import Callable, Iterable
from random import Random

from bot.config import Config
from bot.settings import ChatSettings
from bot.zones import machine_zone
from channels.web import UploadStore, WebChannel
from features.agent import AgentSessionFactory, RetryOptions
from features.compaction import CompactionOptions
from features.contracts.chat import ChatChannel, ChatSender
from features.contracts.clock import Clock
from features.contracts.processes import ProcessSpawnHook, SecretRedactor
from features.contracts.sessions import SessionStore
from features.models import ModelOverride, ModelRegistry, ProviderConfig
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolOptions, ToolRegistry

__all__ = ["default_settings", "make_channels", "make_models", "make_sessions", "make_tools"]

_MODEL_CALLS_AT_ONCE = 256
CONSOLE = "console"


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
            models=tuple(
                ModelOverride(
                    id=model.id,
                    context_window=model.context_window,
                    max_output=model.max_output,
                    input=model.input,
                    reasoning=model.reasoning,
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


def make_tools(config: Config, redactor: SecretRedactor, sandbox: ProcessSpawnHook | None) -> Callable[[ChatSender], ToolRegistry]:
    """What makes the tools of one session."""
    section = config.processes
    policy = ProcessSpawnPolicy(
        ProcessPolicyOptions(inherit=section.inherit, allow=section.allow, deny=section.deny),
        redactor=redactor,
        environ=os.environ,
        hooks=() if sandbox is None else (sandbox,),
    )
    processes = ProcessRunner(policy, redactor)

    def tools(send: ChatSender) -> ToolRegistry:
        return ToolRegistry.built_in(
            ToolOptions(
                processes=processes,
                send=send,
                sandboxed=sandbox is not None,
                disabled=config.tools.disabled,
                bash_timeout_s=config.tools.bash_timeout_s,
                max_result_bytes=config.tools.max_result_bytes,
                max_result_lines=config.tools.max_result_lines,
            )
        )

    return tools


def make_channels(
    config: Config, uploads: UploadStore, wanted: Iterable[str | ChatChannel] | None, *, clock: Clock, random: Random
) -> dict[str, ChatChannel]:
    """The channels that are at work, by name.

    Args:
        wanted: names, or channels of one's own; None for what the configuration enables, and the terminal.
    """
    channels: dict[str, ChatChannel] = {}
    section = config.channels
    names: Iterable[str | ChatChannel] = wanted if wanted is not None else _enabled(config)
    for name in names:
        if not isinstance(name, str):
            channels[name.name] = name
        elif name == "telegram":
            from channels.telegram import TelegramChannel, TelegramOptions

            assert section.telegram.token is not None
            options = TelegramOptions(
                token=section.telegram.token,
                api_url=section.telegram.api_url,
                max_sends_per_second=section.telegram.max_sends_per_second,
            )
            channels[name] = TelegramChannel(options, clock=clock, random=random)
        else:
            channels[name] = WebChannel(name, uploads=uploads, clock=clock)
    return channels


def _enabled(config: Config) -> list[str]:
    enabled = [CONSOLE]
    if config.channels.web.enabled:
        enabled.append("web")
    if config.channels.telegram.token is not None:
        enabled.append("telegram")
    return enabled
