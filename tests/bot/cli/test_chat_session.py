"""``pumice chat --session FILE``: a conversation in a session file itself."""

import json
from pathlib import Path

import pytest

from bot.lock import DataDirectoryLock
from tests.bot.cli.conftest import Terminal


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_conversation_is_in_its_file(pumice: Terminal, tmp_path: Path) -> None:
    """Made where it is not there, gone on with where it is; the chats of the data directory know nothing of it."""
    status, out, err = pumice("chat", "--session", "talk.jsonl", "hello")
    assert (status, err) == (0, "")
    assert "offline assistant" in out
    first = lines(tmp_path / "talk.jsonl")
    assert pumice("chat", "--session", "talk.jsonl", "what can you do")[0] == 0
    second = lines(tmp_path / "talk.jsonl")

    assert (first[0]["type"], first[0]["version"], first[0]["cwd"]) == ("session", 3, str(tmp_path))
    assert second[: len(first)] == first
    assert [entry["parentId"] for entry in second[2:]] == [entry["id"] for entry in second[1:-1]]
    roles = [entry["message"]["role"] for entry in second if isinstance(entry.get("message"), dict)]  # type: ignore[index]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert pumice("sessions", "list")[1] == "There are no sessions yet.\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "talk.jsonl"]


def test_it_works_beside_a_host(pumice: Terminal, tmp_path: Path) -> None:
    """The file is no business of the host that has the data directory."""
    with DataDirectoryLock(tmp_path / "data"):
        assert pumice("chat", "--session", "talk.jsonl", "hello")[0] == 0


def test_a_session_of_pi_goes_on(pumice: Terminal, tmp_path: Path) -> None:
    """Its lines stay as they are; a model that is not to be had here is said and passed over."""
    theirs = [
        '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/","theirs":1.0}',
        '{"type":"model_change","id":"a","parentId":null,"timestamp":"","provider":"anthropic","modelId":"gone"}',
    ]
    path = tmp_path / "pi.jsonl"
    path.write_text("".join(f"{line}\n" for line in theirs))

    assert pumice("chat", "--session", "pi.jsonl", "hello")[0] == 0
    assert path.read_text().splitlines()[:2] == theirs
    assert lines(path)[2]["parentId"] == "a"


@pytest.mark.parametrize("content", ["# Notes\n", "{}\n"])
def test_what_is_no_session_is_refused_and_left_alone(pumice: Terminal, tmp_path: Path, content: str) -> None:
    """One line that says so."""
    path = tmp_path / "notes.md"
    path.write_text(content)
    status, out, err = pumice("chat", "--session", "notes.md", "hello")

    assert (status, out) == (1, "")
    assert err.startswith("pumice: error: ")
    assert "no session file" in err
    assert path.read_text() == content


def test_an_old_or_damaged_file_is_said_and_kept(pumice: Terminal, tmp_path: Path) -> None:
    """The conversation goes on in a sound one."""
    path = tmp_path / "old.jsonl"
    content = '{"type":"session","id":"s1","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/"}\n{torn'
    path.write_text(content)
    status, _, err = pumice("chat", "--session", "old.jsonl", "hello")

    assert status == 0
    assert "pumice: warning: old.jsonl: The file is in version 1" in err
    assert "1 line could not be read, left out: 2." in err
    assert (tmp_path / "old.jsonl.original").read_text() == content
