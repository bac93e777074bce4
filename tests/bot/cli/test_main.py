"""Finding a command, and one line for every error."""

import json
import re
from pathlib import Path

import pytest

from bot.cli.main import _COMMANDS, _tell_error
from bot.version import VERSION
from tests.bot.cli.conftest import Terminal


def test_help_lists_every_command(pumice: Terminal) -> None:
    """Without importing one."""
    status, out, _ = pumice("--help")

    assert status == 0
    for name, (_, text) in _COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(text)}$", out, re.MULTILINE), name
    assert pumice("-h")[1] == out


def test_the_version_is_said(pumice: Terminal) -> None:
    """For reports."""
    assert pumice("--version") == (0, f"pumice {VERSION}\n", "")


def test_without_a_command_help_comes_with_status_2(pumice: Terminal) -> None:
    """Nothing was done."""
    status, _, err = pumice()

    assert status == 2
    assert "Commands" in err


def test_the_slack_manifest_has_every_scope_and_event(pumice: Terminal) -> None:
    """Private channels stay silent without theirs."""
    told = json.loads(pumice("slack", "manifest")[1])
    over_http = json.loads(pumice("slack", "manifest", "--request-url", "https://x.y/slack/events")[1])

    assert {"groups:history", "chat:write", "files:read"} <= set(told["oauth_config"]["scopes"]["bot"])
    assert {"app_mention", "message.groups", "message.im"} <= set(told["settings"]["event_subscriptions"]["bot_events"])
    assert told["settings"]["socket_mode_enabled"]
    assert not over_http["settings"]["socket_mode_enabled"]
    assert over_http["settings"]["event_subscriptions"]["request_url"] == "https://x.y/slack/events"
    assert pumice("slack", "manifest", "--request-url", "http://x")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("docter",), "pumice: error: there is no command 'docter'. Did you mean 'pumice doctor'?"),
        (("weather",), "pumice: error: there is no command 'weather'. See 'pumice --help'."),
        (("--colour",), "pumice: error: no such option '--colour'. See 'pumice --help'."),
        (("doctor", "--jsno"), "pumice: error: no such option '--jsno'. Did you mean '--json'?"),
        (("pair", "approve"), "pumice: error: missing argument 'CODE'. See 'pumice pair approve --help'."),
        (("run", "--role", "boss"), "pumice: error: invalid value for '--role': 'boss' is not one of"),
        (("run", "--role", "worker"), "pumice: error: --role worker needs a shared database, which this version does not serve yet."),
        (("run", "--config", "none.toml"), "none.toml, named by --config, is no file. Write it, or leave --config out"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(pumice: Terminal, arguments: tuple[str, ...], line: str) -> None:
    """Scripts tell mistakes from failures by it."""
    status, out, err = pumice(*arguments)

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("pumice: error: ")
    assert line in err


@pytest.mark.parametrize("command", [("run",), ("pair", "list"), ("sessions", "list")])
def test_a_bad_configuration_stops_every_command(pumice: Terminal, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Before anything is made."""
    (tmp_path / "pumice.toml").write_text("[http]\nprot = 1\n")
    status, out, err = pumice(*command)

    assert (status, out) == (2, "")
    assert err == f"pumice: error: {tmp_path}/pumice.toml: http.prot is no known key. Did you mean http.port?\n"
    assert not (tmp_path / "data").exists()


def test_a_failure_is_one_line_and_status_1(pumice: Terminal, tmp_path: Path) -> None:
    """It was asked rightly, and did not work."""
    (tmp_path / "data").write_text("no folder")
    status, out, err = pumice("sessions", "delete", "x")
    assert (status, out) == (1, "")
    assert err == "pumice: error: there is no session 'x'. 'pumice sessions list' lists them.\n"


def test_a_defect_is_one_line_with_an_id(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """The log has the rest under the same id."""
    assert _tell_error(ZeroDivisionError("a\nb")) == 1

    said = re.fullmatch(
        r"pumice: error: something broke inside \(ZeroDivisionError, error (\w+)\)\. Please report .*\n", capsys.readouterr().err
    )
    assert said
    assert caplog.records[0].facts == {"error_id": said[1]}  # type: ignore[attr-defined]


def test_a_chat_without_a_running_host_needs_the_secrets(pumice: Terminal, tmp_path: Path) -> None:
    """It starts a host of its own, which would fail later and less clearly."""
    (tmp_path / "pumice.toml").write_text('[channels.telegram]\ntoken = "env:NOT_SET_HERE"\n')

    status, out, err = pumice("chat", "hello")
    assert (status, out) == (2, "")
    assert "'NOT_SET_HERE', which is not set" in err
