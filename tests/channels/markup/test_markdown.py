"""Markdown as Telegram shows it."""

import time

import pytest

from channels.markup import RichText, characters_at, render, tail, units
from channels.markup.text_table import display_width


def pieces(rich: RichText) -> list[tuple[str, str, str]]:
    return [(span.kind, rich.text[span.start : span.end], span.value) for span in rich.spans]


@pytest.mark.parametrize(
    ("markdown", "text", "spans"),
    [
        ("**a *b* c**", "a b c", [("bold", "a b c", ""), ("italic", "b", "")]),
        ("~~no~~ `x < y`", "no x < y", [("strikethrough", "no", ""), ("code", "x < y", "")]),
        ("**see `x` now**", "see x now", [("bold", "see ", ""), ("code", "x", ""), ("bold", " now", "")]),
        ("[a](https://e.x/p_(q)_r?s=1&t=2)", "a", [("text_link", "a", "https://e.x/p_(q)_r?s=1&t=2")]),
        ("[`code`](https://e.x)", "code", [("text_link", "code", "https://e.x")]),
        ("[notes](docs/notes.md)", "notes (docs/notes.md)", []),
        ("<https://e.x/a___b> <me@e.x>", "https://e.x/a___b me@e.x", [("text_link", "https://e.x/a___b", "https://e.x/a___b")]),
        ("![a map](https://e.x/m.png)", "a map", [("text_link", "a map", "https://e.x/m.png")]),
        ("https://e.x/three___underscores_x", "https://e.x/three___underscores_x", []),
        ("snake_case_name and 2*3*4", "snake_case_name and 234", [("italic", "3", "")]),
        ("List<int> <think>x</think> <!here> <b>&lt;</b>", "List<int> <think>x</think> <!here> <b><</b>", []),
        ("# Big `x`\n\ntext", "Big x\n\ntext", [("bold", "Big ", ""), ("code", "x", "")]),
        ("a\\* \\_b\\_", "a* _b_", []),
        ("[1]: https://e.x", "[1]: https://e.x", []),
        ("one\ntwo  \nthree", "one\ntwo\nthree", []),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("- [x] done", "• [x] done", []),
        ("", "", []),
        (" \n\t\n", "", []),
        ("***", "———", []),
        ("**", "**", []),
    ],
)
def test_inline_marks(markdown: str, text: str, spans: list[tuple[str, str, str]]) -> None:
    """Each as entities that Telegram takes: code never inside other marks, addresses never lost, HTML as it was written."""
    rich = render(markdown)

    assert rich.text == text
    assert pieces(rich) == spans


def test_nested_lists_are_indented() -> None:
    """Numbers go on from where they start, and a paragraph stays under its item."""
    rich = render("1. one\n   more\n   - inner\n     - deeper\n2. two\n\n7) seven\n\n   under seven")

    assert rich.text == "1. one\n   more\n   • inner\n     ◦ deeper\n2. two\n\n7. seven\n\n   under seven"


def test_code_keeps_language_and_indentation() -> None:
    """Also inside a list, where the list's own indentation is not part of it."""
    rich = render("- run\n  ```c++ title=x\n      if (a < b)\n  \treturn;\n  ```\n- done")

    assert pieces(rich) == [("pre", "    if (a < b)\n    return;", "c++")]
    assert rich.text == "• run\n    if (a < b)\n    return;\n• done"


def test_quotes_are_quotes_and_quotes_in_quotes_are_marked() -> None:
    """Telegram has one level."""
    rich = render("> one **b**\n> two\n>\n> > inner\n> > more\n\nafter")

    assert rich.text == "one b\ntwo\n\n> inner\n> more\n\nafter"
    assert pieces(rich) == [("blockquote", "one b\ntwo\n\n> inner\n> more", ""), ("bold", "b", "")]


def test_tables_are_aligned_by_what_is_seen() -> None:
    """Wide characters take two columns; an address in a cell is not lost."""
    rich = render("| name | n |\n|---|--:|\n| 日本 | 1 |\n| [x](https://e.x) | `22` |")
    (kind, table, _) = pieces(rich)[0]

    assert kind == "pre"
    assert table.split("\n") == ["name            │  n", "────────────────┼───", "日本            │  1", "x (https://e.x) │ 22"]
    assert len({display_width(line.partition("│")[0]) for line in table.split("\n") if "│" in line}) == 1


@pytest.mark.parametrize("text", ["```python\nprint(1)", "~~~\nx", "- a\n  ```\n  x", "> ```js\n> y"])
def test_a_fence_that_is_still_open_is_code(text: str) -> None:
    """While the answer grows, it is most of the time."""
    assert [kind for kind, _, _ in pieces(render(text)) if kind == "pre"] == ["pre"]


def test_right_to_left_text_and_emoji_keep_their_ranges() -> None:
    """Offsets are UTF-16 units: an emoji is two."""
    rich = render("👩‍👩‍👧 **שלום** 🎉 `مرحبا`")
    bold, code = rich.entities()
    encoded = rich.text.encode("utf-16-le")

    assert encoded[2 * bold.offset : 2 * (bold.offset + bold.length)].decode("utf-16-le") == "שלום"
    assert encoded[2 * code.offset : 2 * (code.offset + code.length)].decode("utf-16-le") == "مرحبا"


def test_very_deep_nesting_is_shown_as_it_was_written() -> None:
    """The parser gives up at some depth and would drop what is deeper."""
    text = ">" * 200 + " deep"

    assert render(text).text == text


@pytest.mark.parametrize("unit", ["[", "![", "[a](", "*a **b ", "`", "|a|b|\n|-|-|\n", "> ", "- a\n", "<", "&amp;", "\\", "~~a", "[a](<b"])
def test_hostile_text_is_no_trap(unit: str) -> None:
    """A model that repeats itself must not stop the host; the bound is generous."""
    began = time.process_time()
    render(unit * (20_000 // len(unit)))

    assert time.process_time() - began < 10


@pytest.mark.parametrize("opened", ["```python", "~~~"])
def test_the_tail_of_a_growing_text_keeps_its_fence(opened: str) -> None:
    """Only the end is rendered for a preview, whatever came before."""
    text = "words\n\n```\nold\n```\n" + opened + "\n" + "x = 1\n" * 5000
    end = tail(text, 600)

    assert end.startswith(opened + "\nx = 1")
    assert len(end) < 620
    assert tail("words\n" * 1000, 60).startswith("words\n")


def test_what_stands_at_a_range_of_units() -> None:
    """Ranges that leave the text or cut a character are nothing."""
    assert characters_at("😀ab", [(2, 1), (0, 2), (0, 1), (3, 9), (-1, 2), (1, 0)]) == ["a", "😀", None, None, None, None]
    assert units("😀é漢a") == 5
