"""Secrets are referred to, resolved, and never shown."""

from pathlib import Path

import pytest

from bot.config import Config, ConfigurationError, load_config

TOKEN = "12345:AAbbccddeeff"


def load(tmp_path: Path, reference: str, environ: dict[str, str] | None = None) -> Config:
    (tmp_path / "pumice.toml").write_text(f"[channels.telegram]\ntoken = '{reference}'\n")
    return load_config(None, environ or {}, tmp_path)


def mistake(tmp_path: Path, reference: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, reference, environ)
    return str(caught.value).replace(f"{tmp_path}/", "")


def secret_file(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text)
    path.chmod(mode)


def test_a_secret_comes_from_where_it_is_kept(tmp_path: Path) -> None:
    """A variable, a file beside the configuration, or a systemd credential; a file's last line end is not part of it."""
    secret_file(tmp_path / "token", TOKEN + "\n")
    (tmp_path / "credentials").mkdir()
    secret_file(tmp_path / "credentials/bot", TOKEN, 0o440)

    for reference, environ in (
        ("env:BOT", {"BOT": TOKEN}),
        ("file:token", {}),
        ("file:~/token", {"HOME": str(tmp_path)}),
        ("credential:bot", {"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")}),
    ):
        config = load(tmp_path, reference, environ)
        assert config.channels.telegram.token == TOKEN
        assert config.secrets == (("channels.telegram.token", TOKEN),)
        assert config.warnings == ()


def test_a_literal_works_with_a_warning(tmp_path: Path) -> None:
    """Files are copied, shown and committed."""
    config = load(tmp_path, TOKEN)

    assert config.channels.telegram.token == TOKEN
    assert config.warnings == (
        "channels.telegram.token holds its secret in plain text. Refer to it: env:NAME, file:PATH or credential:NAME.",
    )


def test_a_secret_file_that_others_can_read_is_warned_about(tmp_path: Path) -> None:
    """With the command that mends it."""
    secret_file(tmp_path / "token", TOKEN, 0o644)

    assert load(tmp_path, "file:token").warnings == (
        f"channels.telegram.token: others may read {tmp_path}/token (mode 0644). Run: chmod 600 {tmp_path}/token",
    )


@pytest.mark.parametrize(
    ("reference", "environ", "message"),
    [
        (
            "env:BOT",
            {},
            "channels.telegram.token refers to the variable 'BOT', which is not set. Set it, or leave channels.telegram.token empty.",
        ),
        ("env:BOT", {"BOT": " "}, "channels.telegram.token refers to the variable 'BOT', which is empty."),
        ("file:none", {}, "channels.telegram.token refers to the file none, which cannot be read: No such file or directory."),
        ("file:.", {}, "channels.telegram.token refers to the file "),
        ("file:empty", {}, "channels.telegram.token refers to the file empty, which is empty."),
        ("file:binary", {}, "channels.telegram.token refers to the file binary, which is no text."),
        ("file:large", {}, "channels.telegram.token refers to the file large, which is larger than 65536 bytes."),
        ("credential:bot", {}, "channels.telegram.token refers to the systemd credential 'bot', but there is no $CREDENTIALS_DIRECTORY."),
        (
            "credential:../x",
            {"CREDENTIALS_DIRECTORY": "/run"},
            "channels.telegram.token refers to the credential '../x', which is no credential's",
        ),
        ("env:BOT", {"BOT": "short"}, "channels.telegram.token (from env:BOT) has 5 characters; a secret needs at least 8."),
        ("short", {}, "channels.telegram.token (from the configuration) has 5 characters; a secret needs at least 8."),
    ],
)
def test_a_secret_that_cannot_be_had_is_named_with_its_place(tmp_path: Path, reference: str, environ: dict[str, str], message: str) -> None:
    """Nothing starts with a missing token, and no value is told."""
    secret_file(tmp_path / "empty", "\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00secret-value")
    secret_file(tmp_path / "large", "x" * 70000)

    assert mistake(tmp_path, reference, environ).startswith(message)


def test_a_secret_of_the_wrong_type_is_not_told(tmp_path: Path) -> None:
    """A number in its place may well be the secret."""
    (tmp_path / "pumice.toml").write_text("[channels.telegram]\ntoken = 1234567890\n")
    with pytest.raises(ConfigurationError, match="token is a int; it must be a reference") as caught:
        load_config(None, {}, tmp_path)

    assert "1234567890" not in str(caught.value)


def test_a_header_may_be_plain_or_a_secret(tmp_path: Path) -> None:
    """Most headers are no secrets; a reference is always one."""
    (tmp_path / "pumice.toml").write_text("[mcp.servers.a]\nurl = 'http://a'\nheaders = { Accept = 'x/y', Authorization = 'env:KEY' }\n")
    config = load_config(None, {"KEY": "Bearer 12345"}, tmp_path)

    assert config.mcp.servers["a"].headers == {"Accept": "x/y", "Authorization": "Bearer 12345"}
    assert config.secrets == (("mcp.servers.a.headers.Authorization", "Bearer 12345"),)


def test_more_secrets_to_redact_are_resolved_too(tmp_path: Path) -> None:
    """Values that the host itself does not use."""
    config = load_config(None, {"PUMICE_PROCESSES__SECRET_VALUES": '["env:DB"]', "DB": "db-password"}, tmp_path)

    assert config.secrets == (("processes.secret_values[0]", "db-password"),)


def test_no_dump_of_the_configuration_shows_a_secret(tmp_path: Path) -> None:
    """A traceback or a debug line may hold one."""
    assert TOKEN not in repr(load(tmp_path, "env:BOT", {"BOT": TOKEN}).channels)
