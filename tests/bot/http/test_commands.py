"""``pumice chat`` and ``pumice send`` against a host that answers."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from bot.cli.connection import HostedChat
from bot.cli.conversation import converse
from bot.clock import SystemClock
from bot.http.auth import load_or_create_token
from bot.http.chat_log import ChatLogRow, Outcome
from bot.http.client import HostClient
from bot.http.server import HttpServer
from bot.http.testing import MemoryHost
from features.contracts.chat import Address
from features.contracts.errors import OperatorMustAct, PumiceError, UserMustAct
from features.contracts.events import AgentSettled, AgentStart

MAIN = Address("console", "main")


def answering(host: MemoryHost, text: str, outcome: Outcome = "success") -> None:
    def reply(address: Address, row: ChatLogRow) -> None:
        host.publish(address, AgentStart())
        host.deliver(address, text, answers=(row.id,), outcome=outcome)
        host.publish(address, AgentSettled(outcome=outcome))

    host.reply = reply


def no_host() -> AbstractAsyncContextManager[object]:
    raise AssertionError("a host runs already")


async def test_a_question_is_answered_by_the_host_that_runs(
    server: HttpServer, host: MemoryHost, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As plain Markdown, for a pipe; with the model that was asked for."""
    answering(host, "**42**")
    await converse(data_dir, token=None, name="main", model="a/b", question="what is it?", start_host=no_host)

    assert capsys.readouterr().out == "**42**\n"
    assert host.models == {MAIN: "a/b"}
    assert host.rows[MAIN][0].text == "what is it?"


async def test_without_a_running_host_one_is_started_for_the_while(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same way through the same client."""
    host = MemoryHost(SystemClock(), tmp_path)
    answering(host, "here")
    data_dir = tmp_path / "data"

    @asynccontextmanager
    async def start_host() -> AsyncIterator[object]:
        token = load_or_create_token(data_dir, None)
        async with HttpServer(host, token=token, data_dir=data_dir, clock=host.clock, port=0) as server:
            yield server

    await converse(data_dir, token=None, name="other", model=None, question="hi", start_host=start_host)

    assert capsys.readouterr().out == "here\n"
    assert list(host.rows) == [Address("console", "other")]
    assert await HostClient.find(data_dir) is None


async def test_a_failed_run_raises_its_text_and_prints_nothing(
    server: HttpServer, host: MemoryHost, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line turns it into exit status 1."""
    answering(host, "The key was refused.", "error")

    with pytest.raises(PumiceError, match="key was refused"):
        await converse(data_dir, token=None, name="main", model=None, question="hi", start_host=no_host)
    assert capsys.readouterr().out == ""


async def test_an_unknown_model_is_said_before_anything_is_asked(server: HttpServer, host: MemoryHost, data_dir: Path) -> None:
    """With the host's own words."""
    with pytest.raises(UserMustAct, match="offline/assistant"):
        await converse(data_dir, token=None, name="main", model="x", question="hi", start_host=no_host)

    assert not host.rows


async def test_texts_and_files_are_sent_into_any_chat(server: HttpServer, host: MemoryHost, data_dir: Path, tmp_path: Path) -> None:
    """As the host's own message."""
    (tmp_path / "a.txt").write_text("abc")
    async with await HostClient.connect(data_dir) as client:
        await HostedChat(client, Address("telegram", "5")).send("news", [tmp_path / "a.txt"])
        with pytest.raises(UserMustAct, match=r"gone\.txt cannot be read"):
            await HostedChat(client, MAIN).send("", [tmp_path / "gone.txt"])
        with pytest.raises(UserMustAct, match="not enabled"):
            await HostedChat(client, Address("slack", "T0/C0")).send("news", [])
    (row,) = host.rows[Address("telegram", "5")]

    assert (row.text, row.files[0].name, row.files[0].path.read_text()) == ("news", "a.txt", "abc")


async def test_sending_without_a_host_says_how_to_start_one(tmp_path: Path) -> None:
    """There is nobody who could deliver."""
    with pytest.raises(OperatorMustAct, match="pumice run"):
        await HostClient.connect(tmp_path)
