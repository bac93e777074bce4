"""No module but ``features/processes`` can start a process."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("bot", "channels", "features", "workspaces")
SPAWNER = ROOT / "features" / "processes"
OF_THE_HOST = ROOT / "features" / "models" / "claude_code_transport.py"
"""Starts the one program that no agent asks for and that needs a key: Claude Code, with a list of its own of what it may know."""

MODULES = {"subprocess", "pty", "multiprocessing", "_posixsubprocess", "popen2", "commands", "pexpect", "sh", "plumbum"}
OS_NAMES = {"system", "popen", "fork", "forkpty", "startfile", "posix_spawn", "posix_spawnp"}
OS_PREFIXES = ("exec", "spawn")
ANYWHERE = {
    *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "ProcessPoolExecutor"),
    *("posix_spawn", "posix_spawnp", "forkpty", "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe"),
    *("spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe", "open_process", "run_process"),
}
IMPORTERS = {"__import__", "import_module"}


def ways_out(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of everything that starts a process or gets hold of what can."""
    aliases = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ("os", "posix")
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names if name.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((node.lineno, f"{module}.{name.name}") for name in names if _is_way_out(module, name.name))
            case ast.Attribute(value=ast.Name(id=base), attr=name) if base in aliases and _is_os_way_out(name):
                yield node.lineno, f"{base}.{name}"
            case ast.Attribute(attr=name) if name in ANYWHERE:
                yield node.lineno, name
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(module)), *_]):
                if name in IMPORTERS and module.split(".")[0] in MODULES:
                    yield node.lineno, f"{name}({module!r})"
                elif name == "getattr" and module in OS_NAMES | ANYWHERE:
                    yield node.lineno, f"getattr {module!r}"
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]) if name in OS_NAMES | ANYWHERE:
                yield node.lineno, f"getattr {name!r}"
            case _:
                pass


def _is_os_way_out(name: str) -> bool:
    return name in OS_NAMES or name.startswith(OS_PREFIXES)


def _is_way_out(module: str, name: str) -> bool:
    top = module.split(".")[0]
    if top in MODULES or name in ANYWHERE:
        return True
    if top in ("os", "posix"):
        return _is_os_way_out(name)
    return module in ("asyncio", "concurrent.futures") and name in ("subprocess", "process")


def test_no_room_but_the_process_slice_starts_processes() -> None:
    """Otherwise the spawn policy, and with it the filter for secrets, could be gone around."""
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if not path.is_relative_to(SPAWNER) and path != OF_THE_HOST
        for line, name in ways_out(ast.parse(path.read_text()))
    ]

    assert found == []


def test_the_process_slice_itself_would_be_found() -> None:
    """The search looks where it says."""
    assert any(list(ways_out(ast.parse(path.read_text()))) for path in SPAWNER.glob("*.py"))


@pytest.mark.parametrize(
    "sample",
    [
        "import subprocess",
        "import subprocess as s",
        "from subprocess import run",
        "import asyncio.subprocess, multiprocessing.pool",
        "from multiprocessing import Process",
        "from asyncio import create_subprocess_exec as start",
        "from asyncio import subprocess",
        "import asyncio\nasyncio.create_subprocess_shell('ls')",
        "import asyncio as a\nx = a.create_subprocess_exec",
        "loop.subprocess_exec(f, 'ls')",
        "import os\nos.system('ls')",
        "import os as o\no.popen('ls')",
        "import os\nos.execv('ls', [])",
        "import os\nos.spawnlp(os.P_WAIT, 'ls')",
        "import os\nos.posix_spawn('ls', [], {})",
        "import os\nif os.fork() == 0: pass",
        "from os import system",
        "from os import execvp as go",
        "import pty",
        "from pty import spawn",
        "__import__('subprocess')",
        "import importlib\nimportlib.import_module('subprocess')",
        "import os\ngetattr(os, 'system')('ls')",
        "from concurrent.futures import ProcessPoolExecutor",
        "import concurrent.futures as f\nf.ProcessPoolExecutor()",
    ],
)
def test_every_way_to_start_a_process_is_recognised(sample: str) -> None:
    """A guard that never says no proves nothing."""
    assert list(ways_out(ast.parse(sample)))


@pytest.mark.parametrize("sample", ["import os\nos.getpid()", "session.fork()", "chat.system('x')", "import asyncio\nasyncio.run(f())"])
def test_ordinary_code_is_not_recognised(sample: str) -> None:
    """Or nobody would keep the guard."""
    assert not list(ways_out(ast.parse(sample)))
