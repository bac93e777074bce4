"""What no single key can say: whether the keys fit together, and what this version cannot serve."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from urllib.parse import urlsplit

from bot.config.chat_sections import SlackSection, TelegramSection
from bot.config.config import Config
from bot.config.errors import ConfigurationError
from bot.config.host_sections import HookSection
from bot.zones import is_zone, near_zones
from features.contracts.chat import Address
from features.contracts.extension_events import EXTENSION_EVENTS

__all__ = ["check", "warnings_of"]

_KEYED = ("anthropic", "openai", "google")
_PERSON = {
    "telegram": (re.compile(r"[1-9]\d*"), "telegram:12345 (the numeric id, not the name)"),
    "slack": (re.compile(r"[A-Z0-9]+/[A-Z0-9]+"), "slack:T0123/U0456 (the ids, not the names)"),
    "web": (re.compile("owner"), "web:owner"),
    "console": (re.compile(r"[^/\s]+"), "console:name"),
}
_GROUP = {
    "telegram": (re.compile(r"-[1-9]\d*"), "telegram:-100123 (the numeric id of the group)"),
    "slack": (re.compile(r"[A-Z0-9]+/[A-Z0-9]+"), "slack:T0123/C0456 (the ids, not the names)"),
}
_LONGEST_HOOK_S = 600
_QUIET = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")


def check(config: Config) -> None:
    """Raises ConfigurationError for the first thing that does not fit."""
    _check_host(config)
    _check_access(config)
    _check_models(config)
    _check_channels(config)
    _check_services(config)
    _check_voice(config)


def _check_host(config: Config) -> None:
    zone = config.host.default_time_zone
    if not is_zone(zone):
        near = near_zones(zone)
        hint = f"Did you mean {near[0]!r}?" if near else 'Use a name like "Europe/Vienna".'
        raise ConfigurationError(f"host.default_time_zone is {zone!r}, which is no IANA time zone. {hint}")
    if config.http.public_url:
        _check_url("http.public_url", config.http.public_url, ("https",))
    url = config.storage.url
    if url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(
            "storage.url names PostgreSQL, which this version does not serve yet. Leave storage.url empty to use SQLite."
        )
    if url and not (url.startswith("sqlite:///") and len(url) > len("sqlite:///")):
        raise ConfigurationError(f"storage.url is {url!r}; it must be sqlite:///PATH. Leave it empty for state.db in the data directory.")
    quiet = config.scheduler.quiet_hours
    if quiet and not _QUIET.fullmatch(quiet):
        raise ConfigurationError(f"scheduler.quiet_hours is {quiet!r}; write it like '22:00-07:00'.")


def _check_access(config: Config) -> None:
    access = config.access
    if access.mode == "open" and not access.confirm_open:
        raise ConfigurationError(
            "access.mode is 'open', so that everybody may talk to the agent. Set access.confirm_open = true if that is meant, "
            "or use 'pairing'."
        )
    for key, ids, forms in (("owners", access.owners, _PERSON), ("allow", access.allow, _PERSON), ("groups", access.groups, _GROUP)):
        for given in ids:
            channel, _, rest = given.partition(":")
            if channel not in forms:
                raise ConfigurationError(f"access.{key} has {given!r}; an id begins with one of {', '.join(f'{name}:' for name in forms)}.")
            pattern, form = forms[channel]
            if not pattern.fullmatch(rest):
                raise ConfigurationError(f"access.{key} has {given!r}. Write it as {form}.")


def _check_models(config: Config) -> None:
    known = [*config.providers, "offline"]
    for name, provider in config.providers.items():
        key = f"providers.{name}"
        if not name or "/" in name or any(letter.isspace() for letter in name):
            raise ConfigurationError(f"{key}: a provider's name has no '/' and no spaces. Rename it.")
        if name == "offline" and provider.kind != "offline":
            raise ConfigurationError(f"{key}.kind is {provider.kind!r}, but 'offline' is the built-in provider's name. Rename it.")
        if provider.base_url:
            _check_url(f"{key}.base_url", provider.base_url, ("http", "https"))
        elif provider.kind == "openai-compatible":
            raise ConfigurationError(f"{key}.base_url is missing. Set it to the server's address, like http://127.0.0.1:11434/v1.")
        elif provider.kind in _KEYED and provider.api_key is None:
            variable = f"{provider.kind.upper()}_API_KEY"
            raise ConfigurationError(f'{key}.api_key is missing. Set it, for example to "env:{variable}".')
        if provider.command and provider.kind != "claude-code":
            raise ConfigurationError(f"{key}.command is set, but only a provider of the kind 'claude-code' is a program. Remove it.")
        for i, listed in enumerate(provider.models):
            if listed.file is not None and provider.kind != "local":
                raise ConfigurationError(f"{key}.models[{i}].file is set, but only a provider of the kind 'local' reads files. Remove it.")
    named = [("models.default", config.models.default)]
    named += [(f"models.fallbacks[{i}]", reference) for i, reference in enumerate(config.models.fallbacks)]
    for key, reference in named:
        provider_name, slash, model = reference.partition("/")
        if not slash or not model or not provider_name:
            raise ConfigurationError(f"{key} is {reference!r}; write it as provider/model, like 'offline/assistant'.")
        if provider_name not in known:
            near = get_close_matches(provider_name, known, n=1)
            hint = f"Did you mean {near[0]}/{model}?" if near else f"Add [providers.{provider_name}], or use one of: {', '.join(known)}."
            raise ConfigurationError(f"{key} is {reference!r}, but no provider {provider_name!r} is configured. {hint}")


def _check_channels(config: Config) -> None:
    channels = config.channels
    _check_url("channels.telegram.api_url", channels.telegram.api_url, ("http", "https"))
    _check_url("channels.slack.api_url", channels.slack.api_url, ("http", "https"))
    _check_telegram_webhook(channels.telegram, config.http.public_url)
    _check_slack(channels.slack)


def _check_telegram_webhook(telegram: TelegramSection, public_url: str) -> None:
    if telegram.token is None or telegram.mode != "webhook":
        return
    if telegram.webhook_secret is None:
        raise ConfigurationError("channels.telegram.webhook_secret is missing; without it anybody could forge updates. Set it.")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", telegram.webhook_secret):
        raise ConfigurationError("channels.telegram.webhook_secret may hold only letters, digits, _ and -, at most 256 of them.")
    if not public_url:
        raise ConfigurationError("http.public_url is missing; Telegram calls there in webhook mode. Set it to this host's https address.")


def _check_slack(slack: SlackSection) -> None:
    if slack.bot_token is None:
        if slack.app_token is not None or slack.signing_secret is not None:
            raise ConfigurationError('channels.slack.bot_token is missing. Set it, for example to "env:SLACK_BOT_TOKEN".')
        return
    if slack.mode == "socket" and slack.app_token is None:
        raise ConfigurationError(
            "channels.slack.app_token is missing; Socket Mode needs one with the scope connections:write. "
            'Set it, or set channels.slack.mode = "http".'
        )
    if slack.mode == "http" and slack.signing_secret is None:
        raise ConfigurationError("channels.slack.signing_secret is missing; without it anybody could forge events. Set it.")


def _check_services(config: Config) -> None:
    if not config.tools.web_fetch.timeout_s:
        raise ConfigurationError("tools.web_fetch.timeout_s is 0; it must be above 0. To do without the tool, name it in tools.disabled.")
    try:
        config.approvals.options()
    except ValueError as error:
        raise ConfigurationError(f"approvals.{error}.") from None
    for name, server in config.mcp.servers.items():
        _check_either(f"mcp.servers.{name}", command=server.command, url=server.url)
    for i, hook in enumerate(config.hooks):
        _check_either(f"hooks[{i}]", command=hook.command, url=hook.url)
        _check_hook(f"hooks[{i}]", hook)
    for name, webhook in config.webhooks.items():
        try:
            Address.parse(webhook.chat)
        except ValueError as error:
            raise ConfigurationError(f"webhooks.{name}.chat: {error}.") from None
    for name, language_server in config.language_servers.items():
        if not language_server.command:
            raise ConfigurationError(f'language_servers.{name}.command is empty. Write it as a list, like ["pylsp"].')
    if config.observability.otlp_endpoint:
        _check_url("observability.otlp_endpoint", config.observability.otlp_endpoint, ("http", "https"))


def _check_hook(key: str, hook: HookSection) -> None:
    events = [event.name for event in EXTENSION_EVENTS]
    if hook.event not in events:
        near = get_close_matches(hook.event.lower().replace("-", "_"), events, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"Use one of: {', '.join(events)}."
        raise ConfigurationError(f"{key}.event is {hook.event!r}, and there is no such event. {hint}")
    if not 0 < hook.timeout_s <= _LONGEST_HOOK_S:
        raise ConfigurationError(f"{key}.timeout_s is {hook.timeout_s:g}; it must be above 0 and at most {_LONGEST_HOOK_S}.")


def _check_voice(config: Config) -> None:
    voice = config.voice
    if voice.transcribe and voice.command:
        raise ConfigurationError("voice has both transcribe and command. Keep one.")
    if not voice.transcribe:
        return
    provider, slash, model = voice.transcribe.partition("/")
    if not slash or not model or provider not in config.providers:
        raise ConfigurationError(
            f"voice.transcribe is {voice.transcribe!r}; write it as provider/model, with a provider of the configuration, "
            "like 'openai/whisper-1'."
        )
    kind = config.providers[provider].kind
    if kind not in ("openai", "openai-compatible"):
        raise ConfigurationError(
            f"voice.transcribe is {voice.transcribe!r}, whose provider is of the kind {kind!r}. "
            "Use one of the kind openai or openai-compatible."
        )


def _check_either(key: str, *, command: tuple[str, ...], url: str) -> None:
    if bool(command) == bool(url):
        raise ConfigurationError(f"{key} must have either command or url, and has {'both' if url else 'neither'}. Keep one.")
    if url:
        _check_url(f"{key}.url", url, ("http", "https"))


def _check_url(key: str, url: str, schemes: tuple[str, ...]) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise ConfigurationError(f"{key} is {url!r}; it must be an address that begins with {' or '.join(f'{s}://' for s in schemes)}.")


def warnings_of(config: Config) -> Iterator[str]:
    """What is allowed and still worth a word."""
    if config.access.mode == "open":
        yield "access.mode is 'open': everybody who finds the bot may talk to the agent, at your cost. Use 'pairing' unless that is meant."
    if config.http.host not in ("127.0.0.1", "::1", "localhost"):
        yield f"http.host is {config.http.host!r}: the page is open to the network. Put TLS in front of it, or use 127.0.0.1."
    token = config.channels.telegram.token
    if token is not None and not re.fullmatch(r"\d+:[A-Za-z0-9_-]+", token):
        yield "channels.telegram.token does not look like a bot token (a number, a colon, letters). Copy it from @BotFather, whole."
    for root in config.tools.roots:
        if config.host.data_dir.resolve().is_relative_to(root.resolve()):
            yield (
                f"tools.roots has {str(root)!r}, which holds the data directory: every chat's file tools reach the others' files and the "
                "database. Name the folders below it that are meant."
            )
    for key, name in _switched_on_for_later(config):
        yield f"{key} is set, but this version has no {name} yet. It is ignored."


def _switched_on_for_later(config: Config) -> Iterator[tuple[str, str]]:
    """Keys of features that come later, each with the feature's name."""
    later: tuple[tuple[str, object, str], ...] = (
        ("calendar.backend", config.calendar.backend == "google", "Google Calendar"),
        ("mcp.servers", config.mcp.servers, "MCP"),
        ("a2a.enabled", config.a2a.enabled, "A2A"),
        ("language_servers", config.language_servers, "language servers"),
        ("observability.otlp_endpoint", config.observability.otlp_endpoint, "OpenTelemetry export"),
    )
    yield from ((key, name) for key, switched_on, name in later if switched_on)
