"""Cutting texts: whatever they hold, every part is one that Telegram takes."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.markup import RichText, Span, render, split, units
from tests.servers.telegram_rules import formatted

_MARKS = ("**", "*", "_", "__", "~~", "`", "```", "```py\n", "~~~", "\\", "](")
_BLOCKS = ("\n", "\n\n", "  \n", "- ", "1. ", "> ", "# ", "---\n", "    ", "\t")
_WORDS = ("word ", "日本語", "שלום", "👩‍👩‍👧", "🎉", "e\u0301", "\u200d", "<b>", "&lt;")
_LINKS = ("[x](https://e.x/a_(b))", "![i](https://e.x)", "<https://e.x>", "| a | b |\n|---|---|\n| c | d |\n")
_PIECES = st.sampled_from(_MARKS + _BLOCKS + _WORDS + _LINKS)
_MARKDOWN = st.lists(_PIECES | st.text(max_size=12), max_size=60).map("".join)


def taken(part: RichText) -> None:
    """What the platform checks, and more: bounds, order, nesting, trimming."""
    entities = [{"type": each.kind, "offset": each.offset, "length": each.length, "url": each.value} for each in part.entities()]
    text, kept = formatted(part.text, entities, limit=4096, what="message")

    assert text.strip() == part.text.strip()
    assert len(kept) == len(entities) <= 100
    assert [(each.start, -each.end) for each in part.spans] == sorted((each.start, -each.end) for each in part.spans)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_MARKDOWN)
def test_any_markdown_gives_parts_that_are_taken(markdown: str) -> None:
    """And nothing but whitespace is lost at the cuts."""
    rich = render(markdown)
    for limit in (4096, 64, 7):
        parts = split(rich, limit=limit)

        assert "".join("".join(part.text for part in parts).split()) == "".join(rich.text.split())
        for part in parts:
            assert 0 < units(part.text) <= limit
            assert part.text.strip()
            taken(part)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_MARKDOWN)
def test_every_prefix_renders(markdown: str) -> None:
    """A text is shown while it grows, so it may end anywhere."""
    for end in range(len(markdown) + 1):
        for part in split(render(markdown[:end])):
            taken(part)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300), st.integers(2, 50))
def test_plain_text_is_cut_without_loss(text: str, limit: int) -> None:
    """Character by character, but for whitespace at the ends of parts."""
    parts = split(RichText(text), limit=limit)

    assert Counter("".join(part.text for part in parts)) <= Counter(text)
    assert "".join("".join(part.text for part in parts).split()) == "".join(text.split())


def test_code_is_closed_and_opened_again_with_its_language() -> None:
    """At a line's end, and with the indentation of the next line."""
    code = "".join(f"    line_{number:04} = compute({number})\n" for number in range(300))
    parts = split(render(f"Before\n\n```python\n{code}```\n\nAfter"))

    assert len(parts) == 3
    assert [(span.kind, span.value) for part in parts for span in part.spans] == [("pre", "python")] * 3
    assert parts[1].text.startswith("    line_")
    assert all(line.startswith("    line_") for line in parts[1].text.split("\n"))


def test_a_link_and_bold_go_on_behind_the_cut() -> None:
    """Both parts lead where the whole led."""
    first, second = split(render(f"**[{'word ' * 1200}end](https://e.x)**"))

    assert [span.kind for span in first.spans] == [span.kind for span in second.spans] == ["bold", "text_link"]
    assert second.spans[1].value == "https://e.x"


def test_paragraph_ends_are_preferred_to_line_ends_and_those_to_spaces() -> None:
    """Where one is in the later half; and a word is cut only when there is nothing else."""
    assert [part.text for part in split(RichText("aaaa bbbbb\n\ncc\ndd ee"), limit=16)] == ["aaaa bbbbb", "cc\ndd ee"]
    assert [part.text for part in split(RichText("aaaa bb\ncccc dd"), limit=12)] == ["aaaa bb", "cccc dd"]
    assert [part.text for part in split(RichText("aaaabbbbcccc"), limit=5)] == ["aaaab", "bbbcc", "cc"]


def test_a_pair_of_units_is_never_cut() -> None:
    """An emoji is two units and one character."""
    parts = split(RichText("🎉" * 5000))

    assert [units(part.text) for part in parts] == [4096, 4096, 1808]


def test_a_part_holds_at_most_a_hundred_entities() -> None:
    """Telegram silently ignores the rest."""
    rich = render(" ".join(f"**b{number}**" for number in range(369)))
    parts = split(rich)

    assert [len(part.spans) for part in parts] == [100, 100, 100, 69]


@pytest.mark.parametrize("limit", [4096, 1000])
def test_a_text_of_a_megabyte_is_cut_in_linear_time(limit: int) -> None:
    """The parts know only their own ranges."""
    text = "word 🎉 " * 150_000
    spans = tuple(Span("bold", start, start + 4) for start in range(0, len(text) - 8, 70))
    parts = split(RichText(text, spans), limit=limit)

    assert sum(len(part.spans) for part in parts) >= len(spans)
