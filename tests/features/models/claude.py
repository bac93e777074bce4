"""A program in the place of Claude Code's, for tests."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.servers import claude_cli

__all__ = ["FakeClaude"]


class FakeClaude:
    """A program in a folder, and what became of it."""

    def __init__(self, folder: Path, *steps: dict[str, Any]) -> None:
        self.folder = folder
        self.program = folder / "claude"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} {claude_cli.__file__} --fake {folder} "$@"\n')
        self.program.chmod(0o755)
        (folder / "log.jsonl").touch()
        self.script(*steps)

    def script(self, *steps: dict[str, Any]) -> None:
        (self.folder / "script.json").write_text(json.dumps(steps))

    def log(self, kind: str) -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in (self.folder / "log.jsonl").read_text().splitlines()]
        return [entry for entry in entries if entry["kind"] == kind]

    def running(self) -> set[int]:
        """The processes that were started and are still there."""
        return {entry["pid"] for entry in self.log("start") if Path(f"/proc/{entry['pid']}/cmdline").exists() and _alive(entry["pid"])}


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
