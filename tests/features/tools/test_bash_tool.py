import asyncio
import re
import stat
from pathlib import Path

import pytest

from features.contracts.errors import ModelMustAct
from features.tools.testing import ToolBench, result_text

from .conftest import MakeBench


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def until(holds: object) -> None:
    assert callable(holds)
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - files and processes of others give no event
            await asyncio.sleep(0.01)


async def test_output_of_both_streams_in_the_workspace_and_the_chats_zone(bench: ToolBench, workspace: Path) -> None:
    """The command works where the file tools do."""
    text = await bench.text("bash", command="pwd; echo err >&2; echo $TZ")

    assert text == f"{workspace}\nerr\nEurope/Vienna"


async def test_no_output_is_said(bench: ToolBench) -> None:
    """A result is never empty."""
    result = await bench.run("bash", command="true")

    assert result_text(result) == "(no output)"
    assert not result.is_error
    assert result.details is None


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo out; exit 3", "out\n\nCommand exited with code 3"),
        ("exit 1", "(no output)\n\nCommand exited with code 1"),
        ("echo out; kill -9 $$", "out\n\nCommand was killed by SIGKILL"),
    ],
)
async def test_a_failed_command_is_an_error_with_its_output(bench: ToolBench, command: str, text: str) -> None:
    """Death by a signal is no success."""
    result = await bench.run("bash", command=command)

    assert result.is_error
    assert result_text(result) == text


async def test_a_timeout_kills_the_group_and_keeps_the_output(bench: ToolBench, workspace: Path) -> None:
    """The grandchild too."""
    result = await bench.run("bash", command="echo started; sleep 60 & echo $! > pid; wait", timeout=0.5)

    assert result.is_error
    assert result_text(result) == "started\n\nCommand timed out after 0.5 seconds"
    pid = int((workspace / "pid").read_text())
    await until(lambda: not lives(pid))


async def test_the_timeout_of_the_configuration_holds_where_none_is_given(make_bench: MakeBench) -> None:
    """A forgotten server must not run for ever."""
    text = await make_bench(bash_timeout_s=0.3).text("bash", command="sleep 60")

    assert text == "(no output)\n\nCommand timed out after 0.3 seconds"


async def test_a_daemon_that_holds_the_pipe_is_not_waited_for(bench: ToolBench) -> None:
    """Starting one is no reason to hang until the timeout."""
    async with asyncio.timeout(20):
        assert await bench.text("bash", command="(setsid sleep 60 &) ; echo started", timeout=60) == "started"


async def test_cancelling_kills_the_group_first(bench: ToolBench, workspace: Path) -> None:
    """Stop means stop, also for what the command started."""
    task = asyncio.create_task(bench.run("bash", command="sleep 60 & echo $$ $! > pids; wait"))
    pids = workspace / "pids"
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    leader, child = map(int, pids.read_text().split())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not lives(leader)
    await until(lambda: not lives(child))


async def test_many_lines_are_cut_to_the_last_and_kept_in_a_file(bench: ToolBench, workspace: Path) -> None:
    """The end is where the error stands; the rest can be looked up."""
    result = await bench.run("bash", command="seq 1 3000")
    text = result_text(result)
    notice = re.search(r"\n\n\[Showing lines 1001-3000 of 3000\. Full output: (.+)\]$", text)

    assert text.startswith("1001\n1002\n")
    assert notice is not None
    file = Path(notice[1])
    assert file.is_relative_to(workspace / ".pumice/tmp")
    assert file.read_text() == "".join(f"{n}\n" for n in range(1, 3001))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert result.details["truncation"]["totalLines"] == 3000


async def test_many_bytes_are_cut_and_counted_as_they_really_were(bench: ToolBench) -> None:
    """Not as the window in memory had them."""
    text = await bench.text("bash", command="for i in {1..5000}; do printf '%0200d\\n' $i; done")

    assert "[Showing lines 4747-5000 of 5000 (50.0KB limit). Full output: " in text
    assert len(text.encode()) < 51_600


async def test_one_endless_line_is_cut_at_its_beginning(bench: ToolBench) -> None:
    """Never to nothing."""
    text = await bench.text("bash", command="echo first; head -c 300000 /dev/zero | tr '\\0' x; echo")

    assert text.startswith("x" * 51_200 + "\n\n[Showing last 50.0KB of line 2 (line is 293.0KB). Full output: ")


async def test_a_failing_command_with_a_long_output_names_file_and_status(bench: ToolBench) -> None:
    """Both notices, in this order."""
    text = await bench.text("bash", command="seq 1 3000; exit 7")

    assert re.search(r"Full output: .+\]\n\nCommand exited with code 7$", text)


async def test_secrets_appear_neither_in_result_progress_nor_file(bench: ToolBench) -> None:
    """A file can be sent."""
    text = await bench.text("bash", command="for i in {1..3000}; do echo secret-value; done")
    file = Path(text.rpartition("Full output: ")[2].rstrip("]"))

    for shown in (text, file.read_text(), *bench.reports):
        assert "secret-value" not in shown
        assert "[REDACTED]" in shown


async def test_progress_is_reported_at_a_pace_and_shows_the_last_state(bench: ToolBench) -> None:
    """Also when nothing follows for a while."""
    task = asyncio.create_task(bench.run("bash", command="for i in {1..40}; do echo $i; sleep 0.01; done; read -t 30 <> <(:)"))
    await until(lambda: bench.reports and bench.reports[-1].endswith("\n40"))
    task.cancel()
    await asyncio.wait({task})

    assert 2 <= len(bench.reports) <= 12


async def test_a_missing_workspace_is_named(bench: ToolBench, workspace: Path) -> None:
    """Somebody deleted it."""
    workspace.rmdir()

    with pytest.raises(ModelMustAct, match=f"Working directory does not exist: {workspace}\nCannot execute bash commands"):
        await bench.run("bash", command="true")


async def test_a_result_is_given_though_the_full_output_cannot_be_kept(bench: ToolBench, workspace: Path) -> None:
    """A full disk must not take the result away."""
    (workspace / ".pumice").write_text("in the way")
    text = await bench.text("bash", command="seq 1 3000")

    assert "[Showing lines 1001-3000 of 3000. The full output could not be kept: Not a directory]" in text


async def test_in_a_sandbox_bash_is_for_everybody_who_is_admitted(make_bench: MakeBench) -> None:
    """What it runs is kept to the place's own folder then."""
    assert await make_bench(owner=False, sandboxed=True).text("bash", command="echo hi") == "hi"
