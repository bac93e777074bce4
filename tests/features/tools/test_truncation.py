from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.tools.command_output import CommandOutput
from features.tools.truncation import size_text, truncate_head, truncate_tail

TEXTS = st.text(st.sampled_from("aé€😀\n "), max_size=80)
LIMITS = st.integers(4, 40)


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


@given(TEXTS, st.integers(1, 8), LIMITS)
def test_the_head_is_a_beginning_within_both_limits_and_never_empty(text: str, max_lines: int, max_bytes: int) -> None:
    """A cap that takes everything leaves a model with nothing to go on."""
    cut = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)

    assert text.startswith(cut.content)
    assert len(cut.content.encode()) == cut.output_bytes <= max_bytes
    assert len(lines_of(cut.content)) <= max_lines or cut.content == ""
    assert cut.content or not any(lines_of(text)) or text.startswith("\n")
    assert cut.truncated == (cut.content != text.removesuffix("\n"))
    assert cut.total_lines == len(lines_of(text))


@given(TEXTS, st.integers(1, 8), LIMITS)
def test_the_tail_is_an_end_within_both_limits_and_never_empty(text: str, max_lines: int, max_bytes: int) -> None:
    """The end of an output is where the error stands."""
    cut = truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)

    assert text.removesuffix("\n").endswith(cut.content)
    assert len(cut.content.encode()) == cut.output_bytes <= max_bytes
    assert cut.content or not lines_of(text) or not lines_of(text)[-1]
    assert cut.truncated == (cut.content != text.removesuffix("\n"))


@given(TEXTS, st.integers(1, 8), LIMITS)
def test_whole_lines_are_kept_and_one_more_would_not_fit(text: str, max_lines: int, max_bytes: int) -> None:
    """Nothing is thrown away that there was room for."""
    lines = lines_of(text)
    head = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)
    tail = truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)

    if head.truncated and not head.first_line_exceeds_limit:
        kept = head.output_lines
        assert head.content == "\n".join(lines[:kept])
        assert kept == max_lines or len("\n".join(lines[: kept + 1]).encode()) > max_bytes
    if tail.truncated and not tail.last_line_partial:
        kept = tail.output_lines
        assert tail.content == "\n".join(lines[len(lines) - kept :])
        assert kept == max_lines or len("\n".join(lines[len(lines) - kept - 1 :]).encode()) > max_bytes


@pytest.mark.parametrize(("size", "text"), [(0, "0B"), (1023, "1023B"), (51_200, "50.0KB"), (1_572_864, "1.5MB")])
def test_sizes_are_short(size: int, text: str) -> None:
    """They stand in notices."""
    assert size_text(size) == text


def test_lines_are_named_when_both_limits_are_met_at_once() -> None:
    """The bytes were enough for what was shown."""
    assert truncate_head("ab\ncd\nef", max_lines=2, max_bytes=5).truncated_by == "lines"
    assert truncate_head("ab\ncd\nef", max_lines=9, max_bytes=5).truncated_by == "bytes"


def test_figures_travel_without_the_text() -> None:
    """Details are stored beside the text, not with it twice."""
    details = truncate_tail("a\nb\nc\n", max_lines=1, max_bytes=100).details()["truncation"]

    assert details["truncatedBy"] == "lines"
    assert details["truncated"]
    assert details["totalLines"] == 3
    assert "content" not in details


@pytest.mark.parametrize("pieces", [["x" * 300, "\n"], ["x" * 299, "x\n"], ["x" * 301 + "\n"], ["x" * 100] * 3 + ["\n"]])
def test_a_line_that_begins_outside_the_window_is_told_as_cut(tmp_path: Path, pieces: list[str]) -> None:
    """However the output arrived in pieces; once the window held just what a result may, and the line passed for a whole one."""
    output = CommandOutput(tmp_path / "full", max_bytes=100, max_lines=10)
    for piece in ["first\n", *pieces]:
        output.add(piece)
    text, figures = output.finish()

    assert figures.last_line_partial
    assert text.startswith("x" * 100 + "\n\n[Showing last 100B of line 2")
