"""Finding, reading and overriding the configuration."""

from pathlib import Path

import pytest

from bot.config import Config, ConfigurationError, load_config

EVERY_KEY = Path(__file__).parent / "every_key.toml"
SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-0123456789",
    "TELEGRAM_BOT_TOKEN": "12345:AAbbccddeeff",
    "SLACK_BOT_TOKEN": "xoxb-0123456789",
    "SLACK_APP_TOKEN": "xapp-0123456789",
    "A2A_NAME_TOKEN": "a2a-0123456789",
    "X": "x-0123456789",
}


def load(tmp_path: Path, text: str = "", environ: dict[str, str] | None = None) -> Config:
    if text:
        (tmp_path / "pumice.toml").write_text(text)
    return load_config(None, environ or {}, tmp_path)


def mistake(tmp_path: Path, text: str = "", environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text, environ)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_without_any_file_the_defaults_hold(tmp_path: Path) -> None:
    """A fresh machine has no configuration."""
    config = load(tmp_path, environ={"TZ": "Europe/Vienna"})

    assert config.source is None
    assert config.host.data_dir == tmp_path / "data"
    assert config.database_path == tmp_path / "data/state.db"
    assert config.host.default_time_zone == "Europe/Vienna"
    assert (config.http.host, config.http.port, config.http.token) == ("127.0.0.1", 8765, None)
    assert config.models.default == "offline/assistant"
    assert config.access.mode == "pairing"
    assert config.channels.telegram.token is None
    assert config.warnings == ()
    assert config.secrets == ()


def test_every_documented_key_is_accepted(tmp_path: Path) -> None:
    """The file is the documentation's own example."""
    config = load_config(EVERY_KEY, SECRETS, tmp_path)

    assert config.source == EVERY_KEY
    assert config.host.data_dir == EVERY_KEY.parent / "data"
    assert config.providers["anthropic"].api_key == "sk-ant-0123456789"
    assert config.providers["anthropic"].models[0].context_window == 32768
    assert config.access.owners == ("telegram:12345", "slack:T0/U0")
    assert config.hooks[0].event == "agent_end"
    assert config.webhooks["NAME"].prompt == "New event: {body}"
    assert ("a2a.callers.NAME.token", "a2a-0123456789") in config.secrets


def test_the_documented_values_are_the_defaults(tmp_path: Path) -> None:
    """Where the example shows a plain value, leaving the key out means the same."""
    written = load_config(EVERY_KEY, SECRETS, tmp_path)
    default = load(tmp_path)

    for section in ("chat", "compaction", "retry", "tools", "approvals", "processes", "scheduler", "heartbeat", "memory", "calendar"):
        assert getattr(written, section) == getattr(default, section), section
    assert written.http == default.http
    assert written.observability == default.observability


def test_what_this_version_cannot_serve_is_warned_about(tmp_path: Path) -> None:
    """Silence would look as if it worked."""
    warned = " ".join(load_config(EVERY_KEY, SECRETS, tmp_path).warnings)

    for key in ("mcp.servers", "language_servers"):
        assert f"{key} is set, but this version has no" in warned


def test_a_file_is_looked_for_in_the_documented_order(tmp_path: Path) -> None:
    """--config, then $PUMICE_CONFIG, then the folder, then the home folder."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    (home / ".config/pumice").mkdir(parents=True)
    folder.mkdir()
    places = [tmp_path / "asked.toml", tmp_path / "variable.toml", folder / "pumice.toml", home / ".config/pumice/pumice.toml"]
    for port, place in enumerate(places, start=9001):
        place.write_text(f"http.port = {port}\n")
    environ = {"HOME": str(home), "PUMICE_CONFIG": str(places[1])}

    assert load_config(places[0], environ, folder).http.port == 9001
    assert load_config(None, environ, folder).http.port == 9002
    assert load_config(None, {"HOME": str(home)}, folder).http.port == 9003
    places[2].unlink()
    assert load_config(None, {"HOME": str(home)}, folder).http.port == 9004
    assert load_config(None, {"HOME": str(home), "PUMICE_CONFIG": ""}, folder).http.port == 9004


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    """Going on without it would start another host than the one that was meant."""
    with pytest.raises(ConfigurationError, match=r"missing.toml, named by --config, is no file"):
        load_config(Path("missing.toml"), {}, tmp_path)
    assert "named by PUMICE_CONFIG" in mistake(tmp_path, environ={"PUMICE_CONFIG": "missing.toml"})


def test_relative_paths_start_at_the_file(tmp_path: Path) -> None:
    """So that it does not matter where the host is started from."""
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc/pumice.toml"
    file.write_text('host.data_dir = "state"\ntools.roots = ["../shared", "/srv", "~/docs"]\nstorage.url = "sqlite:///own.db"\n')
    config = load_config(file, {"HOME": "/home/anna"}, tmp_path)

    assert config.host.data_dir == tmp_path / "etc/state"
    assert config.tools.roots == (tmp_path / "etc/../shared", Path("/srv"), Path("/home/anna/docs"))
    assert config.database_path == tmp_path / "etc/own.db"


def test_another_data_directory_moves_the_database_too(tmp_path: Path) -> None:
    """The command line may name one."""
    config = load(tmp_path).with_data_dir(tmp_path / "elsewhere")

    assert config.database_path == tmp_path / "elsewhere/state.db"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http.port = [", "pumice.toml is no valid TOML: Invalid value (at end of document). Correct that line."),
        (
            "[http]\nport 1",
            "pumice.toml is no valid TOML: Expected '=' after a key in a key/value pair (at line 2, column 6). Correct that line.",
        ),
        ("[http]\nprot = 1", "pumice.toml: http.prot is no known key. Did you mean http.port?"),
        ("[telegram]\ntoken = 'x'", "pumice.toml: telegram is no known key. Did you mean channels.telegram?"),
        ("[http]\nlog_level = 'info'", "pumice.toml: http.log_level is no known key. Did you mean host.log_level?"),
        ("[chanels.telegram]\n", "pumice.toml: chanels is no known key. Did you mean channels?"),
        ("[models]\ndefualt = 'x'", "pumice.toml: models.defualt is no known key. Did you mean models.default?"),
        ("[[providers.x.models]]\nwindow = 1", "pumice.toml: providers.x.models[0].window is no known key."),
        ("http.port = 'abc'", "pumice.toml: http.port is 'abc'; it must be a whole number from 0 to 65535."),
        ("http.port = true", "pumice.toml: http.port is true; it must be a whole number from 0 to 65535."),
        ("http.port = 65536", "pumice.toml: http.port is 65536; it must be a whole number from 0 to 65535."),
        ("http = 3", "pumice.toml: http is 3; it must be a table."),
        ("hooks = {}", "pumice.toml: hooks is a table; it must be a list, each item a table."),
        ("tools.roots = 'x'", "pumice.toml: tools.roots is 'x'; it must be a list, each item a path in quotes."),
        ("tools.roots = [1]", "pumice.toml: tools.roots[0] is 1; it must be a path in quotes."),
        ("retry.base_delay_s = nan", "pumice.toml: retry.base_delay_s is nan; it must be a number of at least 0."),
        ("retry.base_delay_s = -1", "pumice.toml: retry.base_delay_s is -1; it must be a number of at least 0."),
        ("chat.stream = 'yes'", "pumice.toml: chat.stream is 'yes'; it must be true or false."),
        (
            "chat.busy = 'stear'",
            "pumice.toml: chat.busy is 'stear'; it must be one of 'steer', 'follow_up', 'interrupt', 'collect'. Did you mean 'steer'?",
        ),
        ("access.owners = [1]", "pumice.toml: access.owners[0] is 1; it must be a text in quotes."),
        ("[mcp.servers.a]\ncommand = 'x'", "pumice.toml: mcp.servers.a.command is 'x'; it must be a list, each item a text in quotes."),
        (
            "[webhooks.a]\nchat = 'telegram:1'\nprompt = 'x'",
            "pumice.toml: webhooks.a.secret is missing; it must be a reference to a secret:",
        ),
        ("[approvals]\nbsah = 'ask'", "pumice.toml: approvals.bsah is no known key. Did you mean approvals.bash?"),
        (
            "[approvals]\nallow_commands = ['ls', 'git log | sh']",
            "approvals.allow_commands[1] is 'git log | sh'; it must be a single simple command",
        ),
        ("[approvals]\ntimeout_s = 900", "approvals.timeout_s is 900; it must be above 0 and at most 840"),
        ("[approvals]\ndeploy = 'maybe'", "pumice.toml: approvals.deploy is 'maybe'; it must be one of 'allow', 'ask', 'deny'."),
        ("host.data_dir = 1979-05-27", "pumice.toml: host.data_dir is 1979-05-27; it must be a path in quotes."),
    ],
)
def test_a_mistake_is_one_line_with_key_value_and_what_is_right(tmp_path: Path, text: str, message: str) -> None:
    """Whoever reads it should not need the manual."""
    assert mistake(tmp_path, text).startswith(message)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """An editor may have saved another encoding."""
    (tmp_path / "pumice.toml").write_bytes(b"host.log_level = '\xff'")

    assert mistake(tmp_path) == "pumice.toml is not UTF-8: byte 18 is 0xff. Save it as UTF-8."


def test_an_empty_text_is_an_absent_key(tmp_path: Path) -> None:
    """Templates are filled with empty strings; none of them may become a path or a token."""
    config = load(tmp_path, 'host.data_dir = ""\nhttp.token = ""\nchannels.telegram.token = ""\nchat.busy = ""\ntools.roots = [""]\n')

    assert config.host.data_dir == tmp_path / "data"
    assert config.http.token is None
    assert config.channels.telegram.token is None
    assert config.chat.busy == "steer"
    assert config.tools.roots == ()


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    """Values are TOML where they are TOML, else text; sections and keys are found in any case."""
    environ = {
        "PUMICE_HTTP__PORT": "9000",
        "PUMICE_chat__stream": "false",
        "PUMICE_ACCESS__OWNERS": '["telegram:1"]',
        "PUMICE_CHANNELS__TELEGRAM__TOKEN": "env:TOKEN",
        "PUMICE_HOST__LOG_LEVEL": "debug",
        "PUMICE_PROVIDERS__MY_GATEWAY__API_KEY": "1234567890",
        "PUMICE_PROVIDERS__NEW__KIND": "offline",
        "PUMICE_TOOLS": '{ disabled = ["bash"] }',
        "PUMICE_MODELS__DEFAULT": "My-Gateway/x",
        "TOKEN": "12345:AAbbccdd",
        "OTHER": "x",
    }
    text = 'http.port = 1\n[providers.My-Gateway]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'
    config = load(tmp_path, text, environ)

    assert config.http.port == 9000
    assert config.chat.stream is False
    assert config.access.owners == ("telegram:1",)
    assert config.channels.telegram.token == "12345:AAbbccdd"
    assert config.host.log_level == "debug"
    assert config.providers["My-Gateway"].api_key == "1234567890", "digits are a text where a text is wanted"
    assert config.providers["new"].kind == "offline"
    assert config.tools.disabled == ("bash",)


def test_an_empty_variable_takes_the_key_away(tmp_path: Path) -> None:
    """It is how a container switches off what its image switches on."""
    config = load(tmp_path, 'http.port = 1\nchat.busy = "collect"', {"PUMICE_HTTP__PORT": "", "PUMICE_CHAT__BUSY": '""'})

    assert config.http.port == 8765
    assert config.chat.busy == "steer"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PUMICE_HTTP__PROT", "1", "PUMICE_HTTP__PROT: http.prot is no known key. Did you mean http.port?"),
        ("PUMICE_NONSENSE", "", "PUMICE_NONSENSE: nonsense is no known key. The file has: a2a, access,"),
        ("PUMICE_HTTP__PORT", "abc", "PUMICE_HTTP__PORT: http.port is 'abc'; it must be a whole number from 0 to 65535."),
        ("PUMICE_HTTP__PORT", "1\nhost = 'x'", "PUMICE_HTTP__PORT: http.port is \"1\\nhost = 'x'\"; it must be a whole number"),
        ("PUMICE_HTTP__PORT__X", "1", "PUMICE_HTTP__PORT__X goes into 'port', which is no table. Correct one of the two."),
        ("PUMICE_HTTP", "no", "PUMICE_HTTP: http is 'no'; it must be a table."),
        ("PUMICE_", "1", "PUMICE_:  is no known key."),
        ("PUMICE_TOOLS__ROOTS", "[" * 5000, "PUMICE_TOOLS__ROOTS: tools.roots is '[[[["),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, value: str, message: str) -> None:
    """Otherwise one would look for the mistake in the file."""
    assert mistake(tmp_path, "http.port = 1", {variable: value}).startswith(message)


def test_a_provider_named_like_its_kind_needs_no_kind(tmp_path: Path) -> None:
    """One variable is enough to use a vendor."""
    config = load(tmp_path, environ={"PUMICE_PROVIDERS__OPENAI__API_KEY": "env:KEY", "KEY": "sk-0123456789"})

    assert config.providers["openai"].kind == "openai"
    assert mistake(tmp_path, "[providers.x]\nbase_url = 'http://a'").startswith(
        "pumice.toml: providers.x.kind is missing; it must be one of"
    )


def test_a_tool_that_is_denied_is_not_offered(tmp_path: Path) -> None:
    """A model need not read of what it may never use; what is asked about it must know."""
    config = load(tmp_path, "[approvals]\nbash = 'ask'\nwrite = 'deny'\nread = 'allow'\ndeploy = 'allow'\nallow_commands = ['git log *']")

    assert config.tools.disabled == ("write",)
    assert config.approvals.options().policy("bash") == "ask"
    assert config.approvals.options().allow_commands == ("git log *",)


def test_a_root_that_holds_the_data_directory_is_warned_of(tmp_path: Path) -> None:
    """The database is in it."""
    config = load(tmp_path, f"[tools]\nroots = ['{tmp_path}', '/usr']")

    (told,) = [told for told in config.warnings if "holds the data directory" in told]
    assert told.startswith(f"tools.roots has {str(tmp_path)!r}")
