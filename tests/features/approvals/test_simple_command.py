"""What counts as a simple command, held against bash itself."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.approvals.request_text import request_text
from features.approvals.simple_command import CommandPattern, simple_argv

PIECES = st.sampled_from(["a", "bc", " ", "  ", "é", "\u2003", *"\t'\"\\*?[]{},~#!=-/.%^;|&$()<>`\n\r\0"])
TEXTS = st.lists(st.lists(PIECES, max_size=12).map("".join), min_size=40, max_size=40)


@settings(max_examples=25, deadline=None)
@given(TEXTS)
def test_a_simple_command_is_what_bash_makes_of_it(texts: list[str]) -> None:
    """Where ours reads other words than bash, something else would run than what was allowed."""
    simple = [(text, argv) for text in texts if (argv := simple_argv(text)) is not None]
    script = "".join(f"printf '%s\\0' {text}\nprintf '\\1'\n" for text, _ in simple)
    run = subprocess.run(["/bin/bash", "-c", script], capture_output=True, check=False, env={"LC_ALL": "C.UTF-8", "PATH": "/nowhere"})

    assert run.stderr == b""
    assert [tuple(each.decode().split("\0")[:-1]) for each in run.stdout.split(b"\1")[:-1]] == [argv for _, argv in simple]


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("ls", ("ls",)),
        (" git  commit -m 'two words' ", ("git", "commit", "-m", "two words")),
        ('echo "a\\"b\\x" \\*', ("echo", 'a"b\\x', "*")),
        ("grep '*.py' ''", ("grep", "*.py", "")),
        ("", None),
        ("'' x", None),
        ("A=1 make", None),
        ("time make", None),
        ("if", None),
        ("ls # all", None),
        ("echo \u202e", None),
    ],
)
def test_splitting(text: str, argv: tuple[str, ...] | None) -> None:
    """Quotes as bash reads them; nothing else."""
    assert simple_argv(text) == argv


@pytest.mark.parametrize(
    ("pattern", "argv", "fits"),
    [
        ("make", ["make"], True),
        ("make", ["make", "x"], False),
        ("make *", ["make"], True),
        ("make *", ["make", "x", "y z"], True),
        ("make * all", ["make", "x", "all"], True),
        ("make * all", ["make", "all"], False),
        ("run test_*.py", ["run", "test_a.py"], True),
        ("run test_*.py", ["run", "test_.pyc"], False),
        ("run a*a", ["run", "a"], False),
        ("run *x*y*", ["run", "axbyc"], True),
        ("run *x*y*", ["run", "ayxb"], False),
        ("run '*'", ["run", "x"], False),
        ("run '*'", ["run", "*"], True),
    ],
)
def test_patterns(pattern: str, argv: list[str], fits: bool) -> None:
    """A star in a word stands for characters, as the last word for words, and in quotes for itself."""
    assert CommandPattern.parse(pattern).matches(argv) is fits


def test_a_pattern_with_many_stars_is_quick() -> None:
    """A hostile argument costs no more than its length."""
    assert not CommandPattern.parse("run " + "a*" * 30 + "b").matches(["run", "a" * 100_000])


def test_what_hides_is_shown() -> None:
    """A text that reads backwards, or ends its code block, is seen as what it is."""
    shown = request_text("bash", {"command": "echo '\u202etxt.exe'\n```\n**yes**\x1b[2K"})

    assert "\\u202e" in shown
    assert "\\x1b[2K" in shown
    assert shown.count("````") == 2


def test_what_is_too_long_to_show_says_so() -> None:
    """Its beginning and its end, and how much is between them."""
    shown = request_text("write", {"path": "a", "content": "x" * 10_000})

    assert len(shown) < 3500
    assert "7,017 characters in the middle are not shown here" in shown
