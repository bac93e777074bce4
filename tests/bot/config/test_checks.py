"""Keys that do not fit together, and keys whose values only the world can judge."""

from pathlib import Path

import pytest

from bot.config import Config, ConfigurationError, load_config


def load(tmp_path: Path, text: str) -> Config:
    (tmp_path / "pumice.toml").write_text(text)
    return load_config(None, {"KEY": "key-0123456789"}, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("access.mode = 'open'", "access.mode is 'open', so that everybody may talk to the agent. Set access.confirm_open = true"),
        ("access.owners = ['12345']", "access.owners has '12345'; an id begins with one of telegram:, slack:, web:, console:."),
        (
            "access.owners = ['telegram:@anna']",
            "access.owners has 'telegram:@anna'. Write it as telegram:12345 (the numeric id, not the name).",
        ),
        ("access.allow = ['telegram:-100']", "access.allow has 'telegram:-100'. Write it as telegram:12345"),
        ("access.allow = ['*']", "access.allow has '*'; an id begins with"),
        ("access.groups = ['telegram:5']", "access.groups has 'telegram:5'. Write it as telegram:-100123 (the numeric id of the group)."),
        ("access.groups = ['web:owner']", "access.groups has 'web:owner'; an id begins with one of telegram:, slack:."),
        (
            "host.default_time_zone = 'Europe/Vienn'",
            "host.default_time_zone is 'Europe/Vienn', which is no IANA time zone. Did you mean 'Europe/Vienna'?",
        ),
        (
            "host.default_time_zone = 'vienna'",
            "host.default_time_zone is 'vienna', which is no IANA time zone. Did you mean 'Europe/Vienna'?",
        ),
        ("host.default_time_zone = 'Europe'", "host.default_time_zone is 'Europe', which is no IANA time zone."),
        ("host.default_time_zone = '../x'", "host.default_time_zone is '../x', which is no IANA time zone."),
        ("storage.url = 'postgresql://db/x'", "storage.url names PostgreSQL, which this version does not serve yet."),
        ("storage.url = 'mysql://db/x'", "storage.url is 'mysql://db/x'; it must be sqlite:///PATH."),
        ("scheduler.quiet_hours = '10pm'", "scheduler.quiet_hours is '10pm'; write it like '22:00-07:00'."),
        ("http.public_url = 'http://a'", "http.public_url is 'http://a'; it must be an address that begins with https://."),
        ("channels.slack.app_token = 'xapp-1-0123456789'", "channels.slack.bot_token is missing. Set it"),
        ("channels.slack.bot_token = 'xoxb-0123456789'", "channels.slack.app_token is missing; Socket Mode needs one"),
        (
            "[channels.slack]\nbot_token = 'xoxb-0123456789'\nmode = 'http'",
            "channels.slack.signing_secret is missing; without it anybody could forge events.",
        ),
        ("channels.telegram.api_url = 'api.telegram.org'", "channels.telegram.api_url is 'api.telegram.org'; it must be an address"),
        ("channels.telegram.api_url = 'http://[::1'", "channels.telegram.api_url is 'http://[::1'; it must be an address"),
        ("models.default = 'gpt'", "models.default is 'gpt'; write it as provider/model, like 'offline/assistant'."),
        (
            "models.default = 'ofline/assistant'",
            "models.default is 'ofline/assistant', but no provider 'ofline' is configured. Did you mean offline/assistant?",
        ),
        (
            "models.default = 'x/y'",
            "models.default is 'x/y', but no provider 'x' is configured. Add [providers.x], or use one of: offline.",
        ),
        ("models.fallbacks = ['x/y']", "models.fallbacks[0] is 'x/y', but no provider 'x' is configured."),
        ("[providers.google]", 'providers.google.api_key is missing. Set it, for example to "env:GOOGLE_API_KEY".'),
        ("[providers.openai]\napi_key = 'env:KEY'\ncommand = 'claude'", "providers.openai.command is set, but only a provider"),
        (
            "[providers.openai]\napi_key = 'env:KEY'\n[[providers.openai.models]]\nid = 'm'\nfile = 'm.gguf'",
            "providers.openai.models[0].file is set, but only a provider of the kind 'local'",
        ),
        ("[providers.anthropic]", 'providers.anthropic.api_key is missing. Set it, for example to "env:ANTHROPIC_API_KEY".'),
        ("[providers.x]\nkind = 'openai-compatible'", "providers.x.base_url is missing. Set it to the server's address"),
        (
            "[providers.x]\nkind = 'openai-compatible'\nbase_url = 'localhost:1'",
            "providers.x.base_url is 'localhost:1'; it must be an address",
        ),
        ("[providers.'a/b']\nkind = 'offline'", "providers.a/b: a provider's name has no '/' and no spaces."),
        (
            "[providers.offline]\nkind = 'anthropic'",
            "providers.offline.kind is 'anthropic', but 'offline' is the built-in provider's name.",
        ),
        ("channels.telegram.mode = 'webhook'\nchannels.telegram.token = 'env:KEY'", "channels.telegram.webhook_secret is missing;"),
        ("[mcp.servers.a]", "mcp.servers.a must have either command or url, and has neither. Keep one."),
        ("[[hooks]]\nevent = 'x'\ncommand = ['a']\nurl = 'http://a'", "hooks[0] must have either command or url, and has both. Keep one."),
        (
            "[channels.telegram]\nmode = 'webhook'\ntoken = 'env:KEY'\nwebhook_secret = 'a secret with blanks'",
            "channels.telegram.webhook_secret may hold only letters, digits, _ and -",
        ),
        (
            "[channels.telegram]\nmode = 'webhook'\ntoken = 'env:KEY'\nwebhook_secret = 'secret_0123456789'",
            "http.public_url is missing; Telegram calls there in webhook mode.",
        ),
        (
            "[[hooks]]\nevent = 'agent-ended'\ncommand = ['a']",
            "hooks[0].event is 'agent-ended', and there is no such event. Did you mean 'agent_end'?",
        ),
        ("[[hooks]]\nevent = 'xyz'\ncommand = ['a']", "hooks[0].event is 'xyz', and there is no such event. Use one of: session_start,"),
        ("[[hooks]]\nevent = 'agent_end'\ncommand = ['a']\ntimeout_s = 0", "hooks[0].timeout_s is 0; it must be above 0 and at most 600."),
        ("[[hooks]]\nevent = 'agent_end'\nurl = 'ftp://a'", "hooks[0].url is 'ftp://a'; it must be an address"),
        ("voice.transcribe = 'x/y'\nvoice.command = ['hear']", "voice has both transcribe and command. Keep one."),
        ("voice.transcribe = 'whisper-1'", "voice.transcribe is 'whisper-1'; write it as provider/model"),
        (
            "voice.transcribe = 'anthropic/x'\n[providers.anthropic]\napi_key = 'env:KEY'",
            "voice.transcribe is 'anthropic/x', whose provider is of the kind 'anthropic'.",
        ),
        ("[webhooks.a]\nsecret = 'env:KEY'\nchat = '12345'\nprompt = 'x'", "webhooks.a.chat: '12345' is no chat address;"),
        ("[language_servers.a]\ncommand = []\nextensions = ['.py']", "language_servers.a.command is empty."),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(tmp_path: Path, text: str, message: str) -> None:
    """One line, the key first, the fix last."""
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("access.mode = 'open'\naccess.confirm_open = true", "access.mode is 'open': everybody who finds the bot may talk"),
        ("http.host = '0.0.0.0'", "http.host is '0.0.0.0': the page is open to the network."),
        ("channels.telegram.token = 'env:KEY'", "channels.telegram.token does not look like a bot token"),
        ("calendar.backend = 'google'", "calendar.backend is set, but this version has no Google Calendar yet."),
        ("a2a.enabled = true", "a2a.enabled is set, but this version has no A2A yet."),
    ],
)
def test_what_works_differently_than_one_may_think_is_told(tmp_path: Path, text: str, warning: str) -> None:
    """It starts all the same."""
    assert any(told.startswith(warning) for told in load(tmp_path, text).warnings)


def test_ids_and_addresses_in_their_right_form_are_taken(tmp_path: Path) -> None:
    """The deny cases above prove nothing without this."""
    config = load(
        tmp_path,
        "access.owners = ['telegram:1', 'slack:T0/U0', 'console:anna']\naccess.groups = ['telegram:-1001', 'slack:T0/C0']\n"
        "storage.url = 'sqlite:////srv/x.db'\nscheduler.quiet_hours = '22:00-07:00'\nhttp.public_url = 'https://bot.example'\n",
    )

    assert config.database_path == Path("/srv/x.db")
    assert config.warnings == ()
