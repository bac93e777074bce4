"""What a sandboxed process cannot do; each against real bubblewrap."""

import shutil
import socket
import sys
from pathlib import Path

import pytest

from features.contracts.errors import ModelMustAct
from features.contracts.processes import ProcessSpawnRequest
from features.processes import BubblewrapSandbox, ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs Debian's bubblewrap: apt-get install bubblewrap")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with two places and something to steal."""
    for name in ("a", "b"):
        (tmp_path / "data" / "workspaces" / name / ".pumice").mkdir(parents=True)
        (tmp_path / "data" / "workspaces" / name / "note.txt").write_text(f"of {name}\n")
    (tmp_path / "data" / "state.db").write_text("everything\n")
    (tmp_path / "pumice.toml").write_text("key\n")
    (tmp_path / "extra").mkdir()
    (tmp_path / "data" / "skills").mkdir()
    (tmp_path / "data" / "skills" / "run.sh").write_text("echo a skill\n")
    return tmp_path / "data"


class Shell:
    """Runs commands in place ``a``."""

    def __init__(self, data: Path, sandbox: BubblewrapSandbox) -> None:
        redactor = SecretRedactor()
        policy = ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ={"PATH": "/usr/bin:/bin"}, hooks=[sandbox])
        self._runner = ProcessRunner(policy, redactor)
        self.workspace = data / "workspaces" / "a"

    async def run(self, command: str) -> str:
        request = ProcessSpawnRequest(
            argv=("/bin/bash", "-c", command), cwd=self.workspace, purpose="bash", workspace=self.workspace
        )  # fmt: skip
        async with self._runner.start(request) as process:
            return "".join([piece async for piece in process.output()])


@pytest.fixture
async def shell(data: Path) -> Shell:
    sandbox = BubblewrapSandbox(
        hidden=[data, data.parent / "pumice.toml"], writable=[data.parent / "extra"], readable=[data / "skills"], network=False
    )
    assert await sandbox.problem() is None
    return Shell(data, sandbox)


@needs_bubblewrap
async def test_a_place_sees_its_own_folder_and_writes_there(shell: Shell) -> None:
    """It is what the agent works in."""
    assert await shell.run("pwd; cat note.txt; echo new > made.txt") == f"{shell.workspace}\nof a\n"
    assert (shell.workspace / "made.txt").read_text() == "new\n"


@needs_bubblewrap
async def test_other_places_the_database_and_the_configuration_are_not_there(shell: Shell, data: Path) -> None:
    """One chat's agent must not read another's, nor the host's keys."""
    assert await shell.run(f"ls {data}/workspaces; cat {data}/state.db {data}/workspaces/b/note.txt 2>/dev/null") == "a\n"
    assert "key" not in await shell.run(f"cat {data.parent}/pumice.toml")


@needs_bubblewrap
@pytest.mark.parametrize("target", ["/etc/made", "/usr/made", ".pumice/made"])
async def test_the_system_and_the_hosts_own_folder_are_read_only(shell: Shell, target: str) -> None:
    """``.pumice`` is the host's; the rest is everybody's."""
    said = await shell.run(f"echo x > {target}")

    assert "Read-only file system" in said
    assert not (shell.workspace / target).exists()


@needs_bubblewrap
async def test_skills_of_the_host_can_be_run_and_not_changed(shell: Shell, data: Path) -> None:
    """They stand in the hidden data directory, and every chat uses the same ones."""
    assert await shell.run(f"bash {data}/skills/run.sh") == "a skill\n"
    assert "Read-only file system" in await shell.run(f"echo x > {data}/skills/run.sh 2>&1 || touch {data}/skills/new 2>&1; true")
    assert (data / "skills" / "run.sh").read_text() == "echo a skill\n"


@needs_bubblewrap
async def test_configured_roots_can_be_written(shell: Shell, data: Path) -> None:
    """``tools.roots`` are the agent's too."""
    await shell.run(f"echo x > {data.parent}/extra/made")

    assert (data.parent / "extra" / "made").read_text() == "x\n"


@needs_bubblewrap
async def test_a_root_that_holds_the_hosts_data_does_not_open_it(data: Path) -> None:
    """What is hidden stays so, wherever it is; the rest of the root can be written."""
    shell = Shell(data, BubblewrapSandbox(hidden=[data], writable=[data.parent], network=True))
    assert await shell.run(f"cat {data}/state.db {data}/workspaces/b/note.txt 2>/dev/null; echo x > {data.parent}/extra/made") == ""
    assert (data.parent / "extra" / "made").exists()
    assert await shell.run("cat note.txt; echo x > made; ls") == "of a\nmade\nnote.txt\n"


@needs_bubblewrap
async def test_what_is_not_there_needs_no_hiding(data: Path) -> None:
    """Doctor looks before the first start; a database has its side files only while it is open."""
    sandbox = BubblewrapSandbox(hidden=[data, Path("/var/lib/nowhere/data"), data.parent / "gone.toml"], network=True)

    assert await sandbox.problem() is None
    assert await Shell(data, sandbox).run("cat note.txt") == "of a\n"


@needs_bubblewrap
async def test_a_socket_that_is_hidden_cannot_be_reached(data: Path) -> None:
    """A read-only file system does not keep anybody from knocking at one."""
    path = data.parent / "door"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        knock = (
            f'{Path(sys.executable).resolve()} -c \'import socket; socket.socket(socket.AF_UNIX).connect("{path}"); print("open")\' 2>&1'
        )
        assert await Shell(data, BubblewrapSandbox(hidden=[data], writable=[data.parent], network=True)).run(knock) == "open\n"
        assert "open\n" not in await Shell(data, BubblewrapSandbox(hidden=[data, path], writable=[data.parent], network=True)).run(knock)


@needs_bubblewrap
async def test_with_the_network_on_it_leads_out(data: Path) -> None:
    """The default: an agent may fetch and install."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        knock = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo open"
        assert await Shell(data, BubblewrapSandbox(hidden=[data], network=True)).run(knock) == "open\n"
        assert "open" not in await Shell(data, BubblewrapSandbox(hidden=[data], network=False)).run(knock)


@needs_bubblewrap
async def test_other_processes_and_the_network_are_out_of_reach(shell: Shell) -> None:
    """Nothing of the host is seen in /proc; with the network off not even loopback leads out."""
    assert await shell.run("ls /proc | grep -c '^[0-9]'") in {"3\n", "4\n", "5\n"}
    assert (await shell.run("grep -c : /proc/net/dev")).strip() == "1"
    assert "CapEff:\t0000000000000000" in await shell.run("cat /proc/self/status")


@needs_bubblewrap
async def test_a_process_without_a_workspace_is_refused(data: Path) -> None:
    """There would be nothing to keep it in."""
    sandbox = BubblewrapSandbox(hidden=[data], network=True)
    redactor = SecretRedactor()
    policy = ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ={}, hooks=[sandbox])

    with pytest.raises(ModelMustAct, match="no workspace"):
        await policy.prepare(ProcessSpawnRequest(argv=("true",), cwd=data, purpose="hook"))


@pytest.mark.parametrize(("bwrap", "said"), [("/bin/false", "does not work here"), ("/nowhere/bwrap", "cannot be started")])
async def test_a_machine_where_it_does_not_work_is_told_apart(bwrap: str, said: str) -> None:
    """``auto`` falls back, ``bubblewrap`` refuses to start, doctor tells the reason."""
    problem = await BubblewrapSandbox(hidden=[], network=True, bwrap=bwrap).problem()

    assert problem is not None
    assert said in problem
