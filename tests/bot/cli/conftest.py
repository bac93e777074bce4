"""A terminal on a fresh machine."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cli import main

Terminal = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pumice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Runs a command in an empty folder; gives its exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        written = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, written.out, written.err

    return run
