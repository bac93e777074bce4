"""The real session of another program whose figures are known, where it is at hand."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from features.contracts.sessions import SessionEntry

_ROOT = Path(__file__).parents[3]
_NAME = "pi-sessions/before-compaction.jsonl"


def pi_session() -> list[SessionEntry]:
    """Its entries as version 3 has them; the test skips where the file is not beside the repository."""
    folders = [Path(os.environ["PUMICE_TEST_CASES"])] if "PUMICE_TEST_CASES" in os.environ else [_ROOT.parent / "shared" / "cases"]
    path = next((folder / _NAME for folder in folders if (folder / _NAME).exists()), None)
    if path is None:
        pytest.skip(f"{_NAME} is not at hand; set PUMICE_TEST_CASES to the folder that holds pi-sessions/")
    return _entries(path)


@cache
def _entries(path: Path) -> list[SessionEntry]:
    """Version 1 has no ids: entries follow one another, and a compaction names what it keeps by its place in the file."""
    _, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [msgspec.convert(_migrated(line, index), type=SessionEntry) for index, line in enumerate(lines)]


def _migrated(line: dict[str, Any], index: int) -> dict[str, Any]:
    line = {**line, "id": str(index), "parentId": str(index - 1) if index else None}
    if line["type"] == "compaction":
        line["firstKeptEntryId"] = str(line.pop("firstKeptEntryIndex") - 1)
    return line
