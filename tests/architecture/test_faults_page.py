"""docs/faults.md names, for each fault that hurt people elsewhere, tests that are there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| ([A-Z]\d+) \| (.+?) \| (.+?) \|$", (ROOT / "docs" / "faults.md").read_text(), re.MULTILINE)
SECTIONS = {"A": 48, "B": 26, "D": 20, "G": 15}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("section", SECTIONS)
def test_each_fault_stands_there_once(section: str) -> None:
    """A row that is forgotten is a fault that comes back."""
    listed = [number for number, _, _ in ROWS if number.startswith(section)]

    assert listed == [f"{section}{number}" for number in range(1, SECTIONS[section] + 1)]


@pytest.mark.parametrize(("number", "held_off"), [(number, held_off) for number, _, held_off in ROWS])
def test_what_holds_it_off_is_there(number: str, held_off: str) -> None:
    """A test that was renamed is named anew."""
    named = TEST.findall(held_off)

    assert named, f"{number} names no test"
    assert [test for file, test in named if test not in functions_of(file)] == []
