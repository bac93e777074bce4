"""grep and find."""

import asyncio
from pathlib import Path

import pytest

from features.contracts.errors import ModelMustAct
from features.tools.linear_pattern import glob_test
from features.tools.testing import ToolBench


@pytest.fixture(autouse=True)
def tree(workspace: Path) -> None:
    for name, content in {
        "example.txt": "first line\nmatch line\nlast line\n",
        "src/app.py": "import os\nNEEDLE = 1\n",
        "src/.hidden/deep.py": "needle\n",
        "build/out.py": "needle\n",
        "src/gen/made.py": "needle\n",
        "src/gen/kept.py": "needle\n",
        ".git/config": "needle\n",
        ".pumice/tmp/bash.log": "needle\n",
        "binary.bin": "needle\0",
        ".gitignore": "build/\n[broken\n",
        "src/.gitignore": "gen/*\n!gen/kept.py\n",
    }.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


async def test_a_single_file_is_named_by_its_last_part(bench: ToolBench) -> None:
    """As ripgrep's users know it."""
    assert await bench.text("grep", pattern="match", path="example.txt") == "example.txt:2: match line"


async def test_the_tree_is_searched_without_what_is_ignored_binary_or_the_hosts(bench: ToolBench) -> None:
    """Nested ignore files and exceptions in them count; hidden files are searched."""
    assert await bench.text("grep", pattern="needle") == "src/.hidden/deep.py:1: needle\nsrc/gen/kept.py:1: needle"


async def test_ignore_files_above_the_searched_folder_count(bench: ToolBench) -> None:
    """The same file is ignored from wherever one looks."""
    assert await bench.text("find", pattern="*.py", path="src/gen") == "kept.py"


async def test_case_literal_and_glob(bench: ToolBench) -> None:
    """Each narrows or widens as it says."""
    assert await bench.text("grep", pattern="needle", ignoreCase=True, glob="*.py", path="src/app.py") == "app.py:2: NEEDLE = 1"
    assert await bench.text("grep", pattern="NEEDLE =", glob="src/*.py") == "src/app.py:2: NEEDLE = 1"
    assert await bench.text("grep", pattern="(?:l)ine", literal=True) == "No matches found"
    assert await bench.text("grep", pattern="MATCH line", literal=True, ignoreCase=True) == "example.txt:2: match line"
    assert await bench.text("grep", pattern="--match") == "No matches found"


async def test_letters_of_every_language_are_found_as_the_description_says(bench: ToolBench, workspace: Path) -> None:
    r"""``\w`` is ASCII alone here, unlike ripgrep's; a model that was not told would take "no matches" for the truth."""
    (workspace / "wien.txt").write_text("Straße\n")

    assert await bench.text("grep", pattern=r"^Stra\p{L}+$", path="wien.txt") == "wien.txt:1: Straße"
    assert await bench.text("grep", pattern=r"^Stra\w+$", path="wien.txt") == "No matches found"


async def test_context_lines_and_the_limit(bench: ToolBench, workspace: Path) -> None:
    """The lines after the last match are still shown."""
    (workspace / "context.txt").write_text("before\nmatch one\nafter\nmiddle\nmatch two\nafter two\n")

    assert await bench.text("grep", pattern="match", path="context.txt", limit=1, context=1) == (
        "context.txt-1- before\ncontext.txt:2: match one\ncontext.txt-3- after\n\n"
        "[1 matches limit reached. Use limit=2 for more, or refine pattern]"
    )
    assert await bench.text("grep", pattern="one|two$", path="context.txt", context=1) == (
        "context.txt-1- before\ncontext.txt:2: match one\ncontext.txt-3- after\n"
        "context.txt-4- middle\ncontext.txt:5: match two\ncontext.txt:6: after two"
    )


async def test_groups_that_do_not_touch_are_separated(bench: ToolBench, workspace: Path) -> None:
    """Or lines would seem to follow each other."""
    (workspace / "context.txt").write_text("hit\n2\n3\n4\nhit\n")
    lines = (await bench.text("grep", pattern="hit", path="context.txt", context=1)).split("\n")

    assert lines == ["context.txt:1: hit", "context.txt-2- 2", "--", "context.txt-4- 4", "context.txt:5: hit"]


async def test_long_lines_and_long_results_are_cut_with_notices(bench: ToolBench, workspace: Path) -> None:
    """Never to nothing."""
    (workspace / "wide.txt").write_text(("x" * 600 + "\n") * 200)
    text = await bench.text("grep", pattern="x+", path="wide.txt", limit=150)

    assert text.startswith(f"wide.txt:1: {'x' * 500}... [truncated]\n")
    assert text.endswith(
        "[150 matches limit reached. Use limit=300 for more, or refine pattern. "
        "Some lines truncated to 500 chars. Use read tool to see full lines. 50.0KB limit reached]"
    )
    assert len(text.encode()) < 52_000


async def test_a_catastrophic_pattern_does_not_hang_the_host(bench: ToolBench, workspace: Path) -> None:
    """It would take Python's engine longer than the universe is old, and nothing else would run meanwhile."""
    (workspace / "evil.txt").write_text("a" * 16_000 + "!\n")
    async with asyncio.timeout(20):
        assert await bench.text("grep", pattern="^(a+)+$", path="evil.txt") == "No matches found"
        assert await bench.text("find", pattern="*a" * 60) == "No files found matching pattern"


async def test_a_pattern_that_is_slow_on_long_lines_is_given_up(bench: ToolBench, workspace: Path) -> None:
    """Every line would hold the whole host for a while."""
    (workspace / "long.txt").write_text(("ab" * 4000 + "ba" * 4000 + "\n") * 200)
    async with asyncio.timeout(20):
        with pytest.raises(ModelMustAct, match="takes too long"):
            await bench.run("grep", pattern="[ab]*a[ab]{4000}[ab]?[ab]{500}b[ab]{300}c", path="long.txt")


async def test_of_a_very_long_line_the_beginning_is_searched_and_that_is_said(bench: ToolBench, workspace: Path) -> None:
    """Minified files are one line."""
    (workspace / "min.js").write_text("x" * 20_000 + "needle")

    assert await bench.text("grep", pattern="needle", path="min.js") == (
        "No matches found\n\n[Of lines beyond 16.0KB only the beginning was searched]"
    )


async def test_a_catastrophic_ignore_rule_does_not_hang_the_host(bench: ToolBench, workspace: Path) -> None:
    """Ignore files come with whatever somebody cloned."""
    (workspace / ".gitignore").write_text("*a" * 40 + "b\n")
    (workspace / ("a" * 200)).touch()
    async with asyncio.timeout(20):
        assert await bench.text("find", pattern="aaa*") == "a" * 200


@pytest.mark.parametrize("pattern", ["[", "(?<=a)b", "(a{1000}){1000}", r"(a)\1"])
async def test_a_pattern_that_is_not_understood_is_refused_with_the_way_out(bench: ToolBench, pattern: str) -> None:
    """The model can search for the text instead."""
    with pytest.raises(ModelMustAct, match="set literal"):
        await bench.run("grep", pattern=pattern)


@pytest.mark.parametrize("tool", ["grep", "find"])
async def test_a_missing_path_is_named(bench: ToolBench, workspace: Path, tool: str) -> None:
    """As it was understood."""
    with pytest.raises(ModelMustAct, match=f"Path not found: {workspace / 'gone'}"):
        await bench.run(tool, pattern="x", path="gone")


async def test_find_marks_folders_and_shows_hidden_files(bench: ToolBench) -> None:
    """What is ignored and .git stay out."""
    assert await bench.text("find", pattern="**/*") == (
        ".gitignore\nbinary.bin\nexample.txt\nsrc/\nsrc/.gitignore\nsrc/.hidden/\nsrc/.hidden/deep.py\nsrc/app.py\nsrc/gen/\nsrc/gen/kept.py"
    )


async def test_find_says_when_its_limit_is_reached(bench: ToolBench) -> None:
    """There may be more."""
    text = await bench.text("find", pattern="*.py", limit=2)

    assert text == "src/.hidden/deep.py\nsrc/app.py\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]"


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/*.py", "x/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("**/a.py", "a.py", True),
        ("/a.py", "b/a.py", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("[!a]?.txt", "bc.txt", True),
        ("[!a]?.txt", "ac.txt", False),
        ("a+b(1).txt", "a+b(1).txt", True),
        ("file[1].txt", "file1.txt", True),
        ("[.txt", "[.txt", True),
        ("{a", "a", True),
        ("a,b}", "a,b}", True),
        ("é*", "élan", True),
    ],
)
def test_globs(glob: str, path: str, fits: bool) -> None:
    """Without a slash the name counts, with one the path."""
    assert glob_test(glob)(path) is fits
