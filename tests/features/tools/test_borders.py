"""Every guard of the file tools says no once here."""

import os
from pathlib import Path
from typing import Any

import pytest

from features.contracts.errors import ModelMustAct
from features.contracts.tools import ToolContext
from features.tools.background import Stop
from features.tools.files import WorkspaceFiles
from features.tools.testing import RecordingSender, ToolBench

from .conftest import MakeBench

READERS: list[tuple[str, dict[str, Any]]] = [
    ("read", {}),
    ("grep", {"pattern": "private"}),
    ("find", {"pattern": "*"}),
    ("ls", {}),
    ("send", {}),
    ("write", {"content": "x"}),
    ("edit", {"oldText": "private", "newText": "x"}),
]
FILE_READERS = [case for case in READERS if case[0] not in ("find", "ls")]
each_tool = pytest.mark.parametrize(("tool", "arguments"), READERS)


@each_tool
@pytest.mark.parametrize("way", ["absolute", "dots", "link to the folder", "link to the file", "home", "at sign"])
async def test_no_tool_leaves_the_workspace(
    bench: ToolBench, sender: RecordingSender, workspace: Path, outside: Path, tool: str, arguments: dict[str, Any], way: str
) -> None:
    """By whatever path, and whatever it is that lies outside."""
    (workspace / "folder").symlink_to(outside)
    (workspace / "file").symlink_to(outside / "private.txt")
    path = {
        "absolute": str(outside / "private.txt"),
        "dots": "../outside/private.txt",
        "link to the folder": "folder/private.txt",
        "link to the file": "file",
        "home": "~/private.txt",
        "at sign": "@../outside/private.txt",
    }[way]

    with pytest.raises(ModelMustAct, match="outside of what file tools reach"):
        await bench.run(tool, path=path, **arguments)
    assert (outside / "private.txt").read_text() == "private\n"
    assert sender.sent == []


@each_tool
@pytest.mark.parametrize("path", ["/proc/self/environ", "/dev/zero", "/sys/kernel"])
async def test_the_kernels_files_are_closed_even_with_the_whole_disk_as_root(
    make_bench: MakeBench, tool: str, arguments: dict[str, Any], path: str
) -> None:
    """The host's environment stands in /proc."""
    with pytest.raises(ModelMustAct, match="closed to file tools"):
        await make_bench(roots=(Path("/"),)).run(tool, path=path, **arguments)


async def test_a_link_to_proc_is_closed_too(make_bench: MakeBench, workspace: Path) -> None:
    """The path that is opened counts, not the one that was written."""
    (workspace / "env").symlink_to("/proc/self/environ")

    with pytest.raises(ModelMustAct, match="closed to file tools"):
        await make_bench(roots=(Path("/"),)).run("read", path="env")


@pytest.mark.parametrize(("tool", "arguments"), READERS[-2:])
@pytest.mark.parametrize("path", [".pumice/scheduler/jobs.json", ".pumice", "link/jobs.json", "sub/../.pumice/x", ".PUMICE/x"])
async def test_the_hosts_folder_can_be_read_and_not_written(
    bench: ToolBench, workspace: Path, tool: str, arguments: dict[str, Any], path: str
) -> None:
    """The truth is in the database; a model must not be able to write what it is then told by the host."""
    folder = workspace / ".pumice" / "scheduler"
    folder.mkdir(parents=True)
    (folder / "jobs.json").write_text("private")
    (workspace / "link").symlink_to(".pumice/scheduler")
    with pytest.raises(ModelMustAct, match="only the host writes"):
        await bench.run(tool, path=path, **arguments)

    assert (folder / "jobs.json").read_text() == "private"
    assert await bench.text("read", path=".pumice/scheduler/jobs.json") == "private"


@pytest.mark.parametrize(("tool", "arguments"), FILE_READERS)
async def test_a_named_pipe_is_refused_instead_of_waiting(bench: ToolBench, workspace: Path, tool: str, arguments: dict[str, Any]) -> None:
    """Opening one blocks until somebody writes."""
    os.mkfifo(workspace / "pipe")

    with pytest.raises(ModelMustAct, match="a named pipe"):
        await bench.run(tool, path="pipe", **arguments)


@pytest.mark.parametrize(("tool", "arguments"), [case for case in FILE_READERS if case[0] != "grep"])
async def test_a_folder_is_no_file(bench: ToolBench, workspace: Path, tool: str, arguments: dict[str, Any]) -> None:
    """Neither is the workspace itself."""
    (workspace / "folder").mkdir()
    for path in ("folder", "."):
        with pytest.raises(ModelMustAct, match="is a directory"):
            await bench.run(tool, path=path, **arguments)


@each_tool
@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 300, "loop", "file/below", ""])
async def test_impossible_paths_are_refused_in_words(
    bench: ToolBench, workspace: Path, tool: str, arguments: dict[str, Any], path: str
) -> None:
    """A model can write anything."""
    (workspace / "loop").symlink_to("loop")
    (workspace / "file").write_text("private")

    with pytest.raises(ModelMustAct):
        await bench.run(tool, path=path, **arguments)


async def test_roots_of_the_operator_are_reached(make_bench: MakeBench, outside: Path) -> None:
    """That is what they are for."""
    bench = make_bench(roots=(outside,))

    assert await bench.text("read", path=str(outside / "private.txt")) == "private"
    assert await bench.text("write", path=str(outside / "new.txt"), content="x") == f"Successfully wrote 1 bytes to {outside / 'new.txt'}"


@pytest.mark.parametrize(("tool", "arguments"), [*FILE_READERS[:3], ("find", {"pattern": "*"}), ("ls", {})])
async def test_what_belongs_to_the_host_can_be_read(make_bench: MakeBench, outside: Path, tool: str, arguments: dict[str, Any]) -> None:
    """A skill of the host is read where it stands."""
    bench = make_bench(readable=(outside,))
    path = outside if tool in ("find", "ls") else outside / "private.txt"

    assert not (await bench.run(tool, path=str(path), **arguments)).is_error


@pytest.mark.parametrize(("tool", "arguments"), FILE_READERS[3:])
async def test_what_belongs_to_the_host_cannot_be_written(
    make_bench: MakeBench, outside: Path, workspace: Path, tool: str, arguments: dict[str, Any]
) -> None:
    """One chat would speak to all the others; not by a link in its own folder either."""
    bench = make_bench(readable=(outside,))
    (workspace / "link").symlink_to(outside)
    for path in (str(outside / "private.txt"), "link/private.txt", str(outside / "new" / "file")):
        with pytest.raises(ModelMustAct, match="can only be read here"):
            await bench.run(tool, path=path, **arguments)
    assert (outside / "private.txt").read_text() == "private\n"
    assert not (outside / "new").exists()


async def test_search_does_not_follow_links_out(bench: ToolBench, workspace: Path, outside: Path) -> None:
    """A walk opens folders by itself."""
    (workspace / "folder").symlink_to(outside)
    (workspace / "file.txt").symlink_to(outside / "private.txt")

    assert await bench.text("grep", pattern="private") == "No matches found"
    assert await bench.text("find", pattern="private*") == "No files found matching pattern"


@pytest.mark.parametrize("swapped", ["folder", "file"])
async def test_a_symlink_put_in_place_after_the_check_does_not_lead_outside(workspace: Path, outside: Path, swapped: str) -> None:
    """A command running beside the tool can swap a path between check and use."""
    (workspace / "folder").mkdir()
    (workspace / "folder" / "private.txt").write_text("own")
    files = WorkspaceFiles(ToolContext(address="a", session_id="s", workspace=workspace, scratch=workspace))
    located = files.locate("folder/private.txt")
    (workspace / "folder" / "private.txt").unlink()
    if swapped == "folder":
        (workspace / "folder").rmdir()
        (workspace / "folder").symlink_to(outside)
    else:
        (workspace / "folder" / "private.txt").symlink_to(outside / "private.txt")

    with pytest.raises(ModelMustAct), files.open_file(located):
        pass
    with pytest.raises(ModelMustAct):
        files.replace(located, b"x", Stop())
    assert (outside / "private.txt").read_text() == "private\n"


async def test_bash_is_for_owners(make_bench: MakeBench, workspace: Path) -> None:
    """Without a sandbox everybody else's commands would run as the host."""
    with pytest.raises(ModelMustAct, match="bash is for the owners"):
        await make_bench(owner=False).run("bash", command="touch made")
    assert not (workspace / "made").exists()
