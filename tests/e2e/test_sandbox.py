"""The sandbox and its absence, from a chat to the command and back."""

import shutil
from pathlib import Path

import pytest

from bot.clock import SystemClock
from bot.doctor import examine
from bot.testing import LoopbackChannel, LoopbackChat
from features.contracts.chat import Person
from features.contracts.errors import OperatorMustAct
from tests.e2e.rig import configured, running
from tests.e2e.test_host import until_answered

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs Debian's bubblewrap: apt-get install bubblewrap")
GUEST = Person(id="telegram:7", name="Eve")
OPEN = "[access]\nmode = 'open'\nconfirm_open = true\nowners = ['telegram:1']\n"


async def runs(chat: LoopbackChat, command: str, sender: Person | None = None) -> str:
    """What the offline assistant says of a command."""
    chat.says(f"run: {command}", sender=sender)
    return (await chat.answer()).text


@needs_bubblewrap
async def test_a_chats_commands_see_its_own_folder_and_nothing_of_the_host(tmp_path: Path) -> None:
    """Another chat's files, the database, the token, the configuration and the files that its secrets are in are not there."""
    (tmp_path / "key").write_text("very-secret-key\n")
    (tmp_path / "key").chmod(0o600)
    elsewhere = tmp_path / "elsewhere.db"
    text = f"{OPEN}[storage]\nurl = 'sqlite:///{elsewhere}'\n[providers.anthropic]\nkind = 'anthropic'\napi_key = 'file:key'\n"
    loop = LoopbackChannel("telegram", clock=SystemClock())
    async with running(configured(tmp_path, text), channels=[loop]) as (host, _):
        data, first, other = host.config.host.data_dir, loop.chat("1"), loop.chat("2")
        await runs(other, "echo theirs > note.txt")
        assert "made" in await runs(first, "echo mine > made; ls")
        assert (data / "workspaces" / "telegram-1" / "made").read_text() == "mine\n"
        looked = await runs(first, f"ls -a {data} {data}/workspaces; cat {data}/workspaces/telegram-2/note.txt {data}/http.token")
        assert "telegram-1" in looked
        assert "theirs" not in looked
        assert not any(name in looked.splitlines() for name in ("http.token", "telegram-2", "host.lock"))
        said = await runs(first, f"wc -c {tmp_path}/key {tmp_path}/pumice.toml {elsewhere}; sha256sum {tmp_path}/key")
        assert " 0 total" in " ".join(said.split())
        assert "Read-only file system" in await runs(first, "touch /usr/made")
        assert "Read-only file system" in await runs(first, "touch .pumice/made")


@needs_bubblewrap
async def test_in_the_sandbox_everybody_who_is_admitted_may_run_commands(tmp_path: Path) -> None:
    """It is what makes that harmless."""
    loop = LoopbackChannel("telegram", clock=SystemClock())
    async with running(configured(tmp_path, OPEN), channels=[loop]):
        assert "hi from eve" in await runs(loop.chat("7"), "echo hi from eve", GUEST)


@pytest.fixture
def no_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which everything is but that."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("echo", "ls"):
        (folder / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.usefixtures("no_bubblewrap")
async def test_without_it_commands_are_for_owners_alone_and_doctor_says_so(tmp_path: Path) -> None:
    """Nobody else gets a shell on the machine, and the file tools go on."""
    loop = LoopbackChannel("telegram", clock=SystemClock())
    async with running(configured(tmp_path, OPEN), channels=[loop]):
        assert "hi from anna" in await runs(loop.chat("1"), "echo hi from anna")
        refused = await runs(loop.chat("7"), "echo hi from eve", GUEST)
        assert "for the owners" in refused
        assert "hi from eve" not in refused.replace("echo hi from eve", "")

    findings = await examine(tmp_path / "pumice.toml", {"HOME": str(tmp_path)}, tmp_path, SystemClock())
    (found,) = [finding for finding in findings if finding.check == "sandbox"]
    assert found.state == "warning"
    assert "bubblewrap is not installed" in found.what
    assert "owners only" in found.what


@pytest.mark.usefixtures("no_bubblewrap")
async def test_where_it_is_demanded_and_absent_the_host_does_not_start(tmp_path: Path) -> None:
    """And says what to install."""
    with pytest.raises(OperatorMustAct, match="install your system's package bubblewrap"):
        async with running(configured(tmp_path, "processes.sandbox = 'bubblewrap'")):
            raise AssertionError


@needs_bubblewrap
async def test_the_network_is_a_setting(tmp_path: Path) -> None:
    """Off, not even the host's own API can be reached."""
    for setting, reached in (("true", True), ("false", False)):
        folder = tmp_path / setting
        folder.mkdir()
        async with running(configured(folder, f"[processes]\nsandbox_network = {setting}")) as (host, client):
            port = host.url.rsplit(":", 1)[1].strip("/")
            posted = await client.post("/api/chats/web:main/messages", {"text": f"run: exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"})
            answer = await until_answered(client, posted["id"])
            assert ("\nreached" in answer["text"]) is reached, answer["text"]
