import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from features.contracts.errors import ModelMustAct
from features.contracts.processes import ProcessSpawnRequest
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.processes.running_process import RunningProcess

Run = Callable[[str], ProcessSpawnRequest]


@pytest.fixture
def redactor() -> SecretRedactor:
    redactor = SecretRedactor()
    redactor.add("secret-value", name="a test secret")
    return redactor


@pytest.fixture
def runner(redactor: SecretRedactor) -> ProcessRunner:
    return ProcessRunner(ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ=os.environ), redactor)


@pytest.fixture
def bash(tmp_path: Path) -> Run:
    return lambda command: ProcessSpawnRequest(argv=("/bin/bash", "-c", command), cwd=tmp_path, purpose="bash")


async def all_output(process: RunningProcess) -> str:
    return "".join([piece async for piece in process.output()])


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def pids_from(process: RunningProcess, count: int) -> list[int]:
    text = ""
    async for piece in process.output():
        text += piece
        if len(text.split()) >= count and text.endswith("\n"):
            break
    return [int(word) for word in text.split()]


async def until_gone(pids: list[int]) -> None:
    async with asyncio.timeout(5):
        while any(map(lives, pids)):  # noqa: ASYNC110 - the kernel gives no event for a process that is not our child
            await asyncio.sleep(0.01)


async def test_both_streams_arrive_in_order_and_the_status_is_given(runner: ProcessRunner, bash: Run) -> None:
    """Errors must stand where they happened."""
    async with runner.start(bash("echo one; echo two >&2; echo three; exit 3")) as process:
        assert await all_output(process) == "one\ntwo\nthree\n"
        assert await process.wait() == 3


async def test_there_is_no_standard_input(runner: ProcessRunner, bash: Run) -> None:
    """A program that asks must end, not wait for an answer that never comes."""
    async with runner.start(bash("cat; echo done")) as process:
        assert await all_output(process) == "done\n"


async def test_output_is_redacted_also_when_a_secret_comes_in_two_writes(runner: ProcessRunner, bash: Run) -> None:
    """A pipe cuts texts anywhere."""
    async with runner.start(bash("printf 'x secret-'; sleep 0.1; printf 'value y'")) as process:
        assert await all_output(process) == "x [REDACTED] y"


async def test_bytes_that_are_no_text_are_replaced_and_split_characters_are_joined(runner: ProcessRunner, bash: Run) -> None:
    """A character of three bytes may come in two writes."""
    async with runner.start(bash(r"printf '\xe2\x82'; sleep 0.1; printf '\xac \xff.'")) as process:
        assert await all_output(process) == "€ \ufffd."


async def test_death_by_signal_is_a_negative_status(runner: ProcessRunner, bash: Run) -> None:
    """It must not look like success."""
    async with runner.start(bash("kill -TERM $$")) as process:
        assert await process.wait() == -signal.SIGTERM


async def test_kill_ends_children_in_the_group_in_own_groups_and_in_own_sessions(runner: ProcessRunner, bash: Run) -> None:
    """``timeout`` and job control leave the group, ``setsid`` leaves the session; stop means all of them."""
    command = "sleep 60 & echo $!; setsid sleep 60 & echo $!; set -m; sleep 60 & echo $!; echo $$; wait"
    async with runner.start(bash(command)) as process:
        pids = await pids_from(process, 4)
        assert all(map(lives, pids))
        await process.kill()

        assert await process.wait() == -signal.SIGKILL
        await until_gone(pids)


async def test_leaving_kills_what_the_ended_command_left_in_the_background(runner: ProcessRunner, bash: Run) -> None:
    """The leader is gone, its group is not."""
    async with runner.start(bash("sleep 60 & echo $!")) as process:
        pids = await pids_from(process, 1)
        assert await process.wait() == 0
        assert all(map(lives, pids))

    await until_gone(pids)


async def test_a_cancelled_caller_leaves_no_process(runner: ProcessRunner, bash: Run) -> None:
    """The group is dead before the cancellation goes on."""
    pids: list[int] = []
    running = asyncio.Event()

    async def use() -> None:
        async with runner.start(bash("sleep 60 & echo $! $$; wait")) as process:
            pids.extend(await pids_from(process, 2))
            running.set()
            await process.wait()

    task = asyncio.create_task(use())
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not lives(pids[1])
    await until_gone(pids)


async def test_output_ends_soon_after_the_exit_though_a_daemon_holds_the_pipe(runner: ProcessRunner, bash: Run) -> None:
    """A process that left the group keeps the pipe open; nobody waits for it."""
    async with asyncio.timeout(10), runner.start(bash("(setsid sleep 60 &) ; echo started")) as process:
        assert await all_output(process) == "started\n"


async def test_output_ends_though_a_daemon_goes_on_writing(runner: ProcessRunner, bash: Run) -> None:
    """Quiet never comes, so there is a limit in time as well."""
    script = "(setsid bash -c 'for i in {1..100}; do echo tick; sleep 0.1; done' &) ; echo started"
    async with asyncio.timeout(10), runner.start(bash(script)) as process:
        assert "started\n" in await all_output(process)


async def test_a_slow_reader_stops_the_child_instead_of_filling_memory(runner: ProcessRunner, bash: Run, tmp_path: Path) -> None:
    """What is not read waits in the pipe, and everything arrives in the end."""
    async with runner.start(bash("head -c 3000000 /dev/zero | tr '\\0' x; touch done")) as process:
        output = process.output()
        first = await anext(output)
        assert not (tmp_path / "done").exists()
        assert len(first) + sum([len(piece) async for piece in output]) == 3_000_000


@pytest.mark.parametrize("argv", [("/no/such/program",), (), ("ls", "a\0b"), ("/etc",)])
async def test_what_cannot_be_started_is_told_to_the_model(runner: ProcessRunner, tmp_path: Path, argv: tuple[str, ...]) -> None:
    """The model chose the command, so the model has to choose another."""
    with pytest.raises(ModelMustAct):
        async with runner.start(ProcessSpawnRequest(argv=argv, cwd=tmp_path, purpose="bash")):
            pass


async def test_a_missing_folder_is_named(runner: ProcessRunner, tmp_path: Path) -> None:
    """Otherwise it reads as if the program were missing."""
    with pytest.raises(ModelMustAct, match="Working directory does not exist"):
        async with runner.start(ProcessSpawnRequest(argv=("ls",), cwd=tmp_path / "gone", purpose="bash")):
            pass


async def test_the_child_gets_exactly_the_environment_of_the_policy(redactor: SecretRedactor, tmp_path: Path) -> None:
    """Nothing is inherited beside it."""
    runner = ProcessRunner(ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ={"HOME": "/h", "X_KEY": "k"}), redactor)
    code = "import os; print(sorted(os.environ.items()))"
    request = ProcessSpawnRequest(argv=(sys.executable, "-I", "-c", code), cwd=tmp_path, purpose="bash", environment={"A": "1"})
    async with runner.start(request) as process:
        shown = await all_output(process)

    assert {name for name, _ in eval(shown)} - {"LC_CTYPE"} == {"HOME", "A"}
