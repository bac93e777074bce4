import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from features.contracts.errors import ModelMustAct
from features.tools.line_diff import line_diff
from features.tools.text_edit import edited, replacements

TEXTS = st.text(st.sampled_from("ab \n"), max_size=30)
WILD = st.text(st.sampled_from("ab \t\r\n\u2019\u201c\u2014\u00a0ﬁＡé\u0301가\u1161\x85"), max_size=30)


def edit(text: str, *edits: tuple[str, str]) -> str:
    return edited(text, replacements(text, edits, "file.txt"))


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("Hello, world!", "world", "testing", "Hello, testing!"),
        ("line one   \nline two  \nline three\n", "line one\nline two\n", "replaced\n", "replaced\nline three\n"),
        ("你好，世界\n你好（世界）\n", "你好,世界\n你好(世界)\n", "你好，pi\n你好(pi)\n", "你好，pi\n你好(pi)\n"),
        ("ＡＢＣ１２３\ncafe\u0301\n", "ABC123\ncafé\n", "XYZ789\ncoffee\n", "XYZ789\ncoffee\n"),
        ("x = \u2018a\u2019\n", "x = 'a'", "x = 'b'", "x = 'b'\n"),
        ("say \u201chi\u201d", '"hi"', '"ho"', 'say "ho"'),
        ("1\u20132\u20143", "1-2-3", "4", "4"),
        ("a\u00a0b", "a b", "ab", "ab"),
        (
            "const x = 'exact';\nconst y = 'other';\n",
            "const x = 'exact';",
            "const x = 'new';",
            "const x = 'new';\nconst y = 'other';\n",
        ),
        ("first\r\nsecond\r\nthird\r\n", "second\n", "REPLACED\n", "first\r\nREPLACED\r\nthird\r\n"),
        ("first\nsecond\nthird\n", "second\r\n", "REPLACED\r\n", "first\nREPLACED\nthird\n"),
        ("a\r\nb\nc\r\nd\n", "b", "B\nB", "a\r\nB\nB\nc\r\nd\n"),
        ("a\r\nb\nc\r\nd\n", "c", "C\nC", "a\r\nb\nC\r\nC\r\nd\n"),
        ("keep \u201cthis\u201d   \nx\u2019y\n", "x'y", "z", "keep \u201cthis\u201d   \nz\n"),
        ("e\u0301a", "éa", "X", "X"),
        ("delete me", " me", "", "delete"),
    ],
)
def test_what_is_found_is_replaced_and_the_rest_stays(text: str, old: str, new: str, result: str) -> None:
    """Also where the model wrote plain quotes, spaces and line ends for others."""
    assert edit(text, (old, new)) == result


@pytest.mark.parametrize(
    ("text", "old", "count"),
    [
        ("foo foo foo", "foo", 3),
        ("hello world   \nhello world\n", "hello world", 2),
        ("hello\r\nworld\r\n---\r\nhello\nworld\n", "hello\nworld\n", 2),
        ("aaa", "aa", 2),
        ("\u2018a\u2019 \u201ba\u2018", "'a'", 2),
    ],
)
def test_what_stands_there_several_times_is_refused(text: str, old: str, count: int) -> None:
    """Nobody could say which one is meant."""
    with pytest.raises(ModelMustAct, match=f"Found {count} occurrences of the text in file\\.txt. The text must be unique"):
        edit(text, (old, "bar"))


@pytest.mark.parametrize("old", ["nonexistent", "wor ld", "\u2028", "  \n  "])
def test_what_is_not_there_is_refused(old: str) -> None:
    """Guessing would change something else."""
    with pytest.raises(ModelMustAct, match=r"Could not find the exact text in file\.txt"):
        edit("Hello, world!", (old, "x"))


def test_an_empty_old_text_is_refused() -> None:
    """It stands everywhere."""
    with pytest.raises(ModelMustAct, match="is empty"):
        edit("text", ("", "x"))


def test_half_of_a_ligature_is_not_matched() -> None:
    """Replacing the i of one character that looks like fi would need a part of it."""
    with pytest.raises(ModelMustAct, match="Could not find"):
        edit("ﬁle", ("ile", "x"))


def test_several_edits_are_matched_against_the_text_before_the_call() -> None:
    """The first must not make or break the place of the second."""
    assert edit("one two three", ("three", "one"), ("one", "three")) == "three two one"


def test_all_wrong_edits_are_named_at_once() -> None:
    """Each by its number."""
    with pytest.raises(ModelMustAct) as refused:
        edit("one one two", ("one", "1"), ("two", "2"), ("three", "3"))

    assert re.findall(r"edits\[(\d)\]", str(refused.value)) == ["0", "2"]


def test_overlapping_edits_are_refused() -> None:
    """There is no order in which both would be right."""
    with pytest.raises(ModelMustAct, match="overlap"):
        edit("abcdef", ("abcd", "x"), ("cdef", "y"))


@given(TEXTS, TEXTS, TEXTS, st.data())
def test_an_exact_unique_edit_is_a_plain_replacement(before: str, old: str, new: str, data: st.DataObject) -> None:
    """The reference is Python's own replace."""
    text = before + old + data.draw(TEXTS)
    assume(old and len(re.findall(f"(?={re.escape(old)})", text)) == 1)

    assert edit(text, (old, new)) == text.replace(old, new)


@given(WILD, WILD, WILD, st.text(st.sampled_from("xy"), max_size=5))
def test_bytes_outside_of_the_replaced_part_are_never_touched(before: str, old: str, after: str, new: str) -> None:
    """Whatever is fuzzy in the search stays in the file."""
    text = before + old + after
    try:
        found = replacements(text, [(old.replace("\u2019", "'").replace("\u00a0", " "), new)], "file.txt")
    except ModelMustAct:
        return
    result = edited(text, found)

    assert result.startswith(text[: found[0].start])
    assert result.endswith(text[found[0].end :])
    assert result == text[: found[0].start] + new + text[found[0].end :]


@given(TEXTS, st.data())
def test_a_diff_applied_to_the_old_lines_gives_the_new_ones(text: str, data: st.DataObject) -> None:
    """Otherwise it shows something that did not happen."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(TEXTS)
    from features.tools.text_edit import Replacement

    found = [Replacement(start=start, end=end, new=new)]
    result = edited(text, found)
    assume(result != text)
    diff, first = line_diff(text, found)
    rows = [re.fullmatch(r"([ +-])\s*(\d+|) (.*)", row) for row in diff.split("\n")]
    old_lines, new_lines = text.split("\n"), result.split("\n")

    assert old_lines[: first - 1] == new_lines[: first - 1]
    for row in rows:
        assert row is not None
        if row[1] == "-":
            assert old_lines[int(row[2]) - 1] == row[3]
        elif row[2]:
            assert new_lines[int(row[2]) - 1] == row[3]
    removed, added = (sum(1 for row in rows if row is not None and row[1] == sign) for sign in "-+")
    assert len(new_lines) - len(old_lines) == added - removed


def test_a_diff_shows_four_lines_around_and_dots_for_the_rest() -> None:
    """Long files are not shown whole."""
    text = "".join(f"line {number}\n" for number in range(1, 21))
    diff, first = line_diff(text, replacements(text, [("line 10\n", "line ten\nand more\n")], "file.txt"))

    assert first == 10
    assert diff.split("\n") == [
        "    ...",
        *(f"  {n} line {n}" if n < 10 else f" {n} line {n}" for n in range(6, 10)),
        "-10 line 10",
        "+10 line ten",
        "+11 and more",
        *(f" {n + 1} line {n}" for n in range(11, 15)),
        "    ...",
    ]
