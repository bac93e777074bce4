import os
from collections.abc import Callable
from pathlib import Path

import pytest

from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.tools import ToolOptions, ToolRegistry
from features.tools.testing import RecordingSender, ToolBench

MakeBench = Callable[..., ToolBench]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "private.txt").write_text("private\n")
    return folder


@pytest.fixture
def sender() -> RecordingSender:
    return RecordingSender()


@pytest.fixture
def make_bench(workspace: Path, sender: RecordingSender) -> MakeBench:
    def make(*, owner: bool = True, roots: tuple[Path, ...] = (), readable: tuple[Path, ...] = (), **options: object) -> ToolBench:
        redactor = SecretRedactor()
        redactor.add("secret-value", name="a test secret")
        runner = ProcessRunner(ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ=os.environ), redactor)
        registry = ToolRegistry.built_in(ToolOptions(processes=runner, send=sender, **options))  # type: ignore[arg-type]
        return ToolBench(registry, workspace, owner=owner, roots=roots, readable=readable)

    return make


@pytest.fixture
def bench(make_bench: MakeBench) -> ToolBench:
    return make_bench()
