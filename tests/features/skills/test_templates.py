"""Prompt templates."""

import pytest

from features.skills.templates import expand, split_arguments

VALS = [f"val{number}" for number in range(15)]


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("Test: $ARGUMENTS", ["a", "b", "c"], "Test: a b c"),
        ("Test: $@", ["a", "b", "c"], "Test: a b c"),
        ("$ARGUMENTS", ["$1", "$ARGUMENTS"], "$1 $ARGUMENTS"),
        ("$@", ["$100", "$1"], "$100 $1"),
        ("$1: $ARGUMENTS", ["prefix", "a", "b"], "prefix: prefix a b"),
        ("Test: $1", [], "Test: "),
        ("Test: $@", [], "Test: "),
        ("$ARGUMENTS and $@", ["a", "b"], "a b and a b"),
        ("$1 $2 $3 $4 $5", ["a", "b"], "a b   "),
        ("$1$2", ["a", "b"], "ab"),
        ("$0", ["a", "b"], ""),
        ("$1.5", ["a"], "a.5"),
        ("pre$@", ["a", "b"], "prea b"),
        ("$ARGUMENTS", ["a", "", "c"], "a  c"),
        ("$ARGUMENTS", ["  leading  ", "trailing  "], "  leading   trailing  "),
        ("$A $$ $ $ARGS", ["a"], "$A $$ $ $ARGS"),
        ("$arguments $Arguments $ARGUMENTS", ["a", "b"], "$arguments $Arguments a b"),
        ("$10 $12 $15", VALS, "val9 val11 val14"),
        ("Price: \\$100", [], "Price: \\"),
        ("${@:2}", ["a", "b", "c", "d"], "b c d"),
        ("${@:2:2}", ["a", "b", "c", "d"], "b c"),
        ("${@:99}", ["a", "b"], ""),
        ("${@:10:5}", ["a", "b"], ""),
        ("${@:2:0}", ["a", "b", "c"], ""),
        ("${@:1:10}", ["a", "b"], "a b"),
        ("${@:0}", ["a", "b", "c"], "a b c"),
        ("${@:2} vs $@", ["a", "b", "c"], "b c vs a b c"),
        ("${@:1}", ["${@:2}", "test"], "${@:2} test"),
        ("prefix${@:2}suffix", ["a", "b", "c"], "prefixb csuffix"),
        ("${@:1:2} vs ${@:3:2}", ["a", "b", "c", "d", "e"], "a b vs c d"),
        ("${@:2:1}|$3|$11", ["a", "b", "c"], "b|c|"),
    ],
)
def test_places_are_filled_as_in_pi(template: str, arguments: list[str], expected: str) -> None:
    """People bring their templates along."""
    assert expand(template, arguments) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b   c", ["a", "b", "c"]),
        ("a\tb", ["a", "b"]),
        ("  a b  ", ["a", "b"]),
        ('"first arg" second', ["first arg", "second"]),
        ("'first arg' second", ["first arg", "second"]),
        ('"" " "', [" "]),
        ('"a\nb"', ["a\nb"]),
        ('"quoted \\"text\\""', ["quoted \\text\\"]),
        ("", []),
        ('a"b c"d', ["ab cd"]),
        ("'it''s'", ["its"]),
        ('"unterminated x', ["unterminated x"]),
    ],
)
def test_arguments_are_split_at_white_space_outside_quotes(text: str, expected: list[str]) -> None:
    """As in pi, and without a shell's surprises."""
    assert split_arguments(text) == expected
