"""How large a context is."""

import pytest

from features.compaction.compactor import CompactionOptions, Compactor
from features.compaction.tokens import context_tokens, estimate, is_hidden_overflow, message_of, request_overhead, usage_tokens
from features.contracts.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from features.contracts.models import ToolSpec
from features.contracts.sessions import MessageEntry, SessionEntry
from tests.features.compaction.builders import MODEL, assistant, branch, call, compaction, result, usage, user
from tests.features.compaction.pi_session import pi_session

IMAGE = ImageBlock(data="AAAA", mime_type="image/png")


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user("12345"), 2),
        (user("ää😀"), 1),
        (UserMessage(content=[TextBlock(text="1234"), IMAGE], timestamp=0), 1201),
        (ToolResultMessage(tool_call_id="c", tool_name="t", content=[IMAGE, IMAGE], is_error=False, timestamp=0), 2400),
        (CustomMessage(custom_type="x", content="12345678", display=True, timestamp=0), 2),
        (assistant("1234", ThinkingBlock(thinking="1234"), call("c", "read", path="x")), 6),
        (BashExecutionMessage(command="1234", output="1234", cancelled=False, truncated=False, timestamp=0), 2),
        (BranchSummaryMessage(summary="1234", from_id="1", timestamp=0), 1),
    ],
)  # fmt: skip
def test_a_message_costs_a_fourth_of_its_characters(message: Message, tokens: int) -> None:
    """UTF-16 units, rounded up; a picture is 4,800 characters, a call its name and its arguments as JSON."""
    assert estimate(message) == tokens


@pytest.mark.parametrize(("given", "tokens"), [(usage(1000, 500, 200, 100), 1800), (usage(0, 0, 0, 0), 0)])
def test_what_a_provider_counted(given: Usage, tokens: int) -> None:
    assert usage_tokens(given) == tokens


def tokens_of(entries: list[SessionEntry], *, overhead: int = 0) -> int:
    messages = [message for entry in entries if (message := message_of(entry)) is not None]
    return context_tokens(reversed(entries), messages, overhead=overhead)


def test_the_last_good_answer_counts_and_what_came_after_it() -> None:
    """An aborted answer's figure is of no use: it says nothing about the whole."""
    entries = branch(user(), assistant(used=usage(100)), user("1234"), assistant("12345678", stop="aborted", used=usage(300)), user("1234"))

    assert tokens_of(entries, overhead=1000) == 100 + 1 + 1


def test_without_any_figure_all_of_it_is_estimated() -> None:
    """System prompt and tools go along with every request."""
    assert tokens_of(branch(user("1234"), result("c", "12345678")), overhead=50) == 53


def test_a_figure_from_before_a_compaction_is_not_used() -> None:
    """What was kept still carries it."""
    entries = branch(user("1234"), assistant("1234", used=usage(90_000)), compaction("1234", "0"), user("1234"))

    assert tokens_of(entries) == 3


def test_a_failed_answer_costs_nothing() -> None:
    """It is not sent again."""
    assert tokens_of(branch(user("1234"), assistant("x" * 4000, stop="error", error="no"))) == 1


def test_tool_schemas_and_the_system_prompt_are_counted() -> None:
    tool = ToolSpec(name="look", description="d" * 96, parameters={"type": "object", "properties": {"path": {"type": "string"}}})

    assert request_overhead("s" * 400, [tool]) == 100 + 25 + -(-len('{"type": "object", "properties": {"path": {"type": "string"}}}') // 4)


@pytest.mark.parametrize(
    ("tokens", "reserve", "enabled", "due"), [(95_000, 10_000, True, True), (89_000, 10_000, True, False), (95_000, 10_000, False, False)]
)
def test_when_a_compaction_is_due(tokens: int, reserve: int, enabled: bool, due: bool) -> None:
    assert Compactor(CompactionOptions(reserve_tokens=reserve, enabled=enabled)).is_due(tokens, MODEL) is due


def test_a_small_window_is_not_all_reserve() -> None:
    """A local model of 8,000 tokens is compacted at 6,000, not at once."""
    import msgspec

    small = msgspec.structs.replace(MODEL, context_window=8_000)

    assert not Compactor().is_due(6_000, small)
    assert Compactor().is_due(6_001, small)


@pytest.mark.parametrize(
    ("message", "hidden"),
    [
        (assistant(stop="length", used=usage(60, 0, 39)), True),
        (assistant(stop="length", used=usage(60, 0, 38)), False),
        (assistant("a", stop="length", used=usage(99, 1)), False),
        (assistant(stop="stop", used=usage(99)), False),
    ],
)
def test_a_cut_off_answer_without_a_word_was_an_overflow(message: object, hidden: bool) -> None:
    """Some services say nothing of it."""
    assert is_hidden_overflow(message, 100) is hidden  # type: ignore[arg-type]


def test_the_figures_of_a_real_session() -> None:
    """1,002 entries; the same sum as the program that wrote them."""
    entries = pi_session()

    assert len(entries) == 1002
    assert sum(estimate(entry.message) for entry in entries if isinstance(entry, MessageEntry)) == 375_427


@pytest.mark.parametrize(
    ("entries", "due"),
    [
        (branch(user(), assistant(stop="error", error="no")), False),
        (branch(user(), assistant(used=usage(95_000)), compaction("s", "0"), assistant(stop="error", error="no")), False),
        (branch(user(), assistant(used=usage(95_000)), user(), assistant(stop="error", error="no")), True),
    ],
    ids=["no figure at all", "only one from before a compaction", "one from before the failure"],
)
def test_a_failed_call_has_no_figure_of_its_own(entries: list[SessionEntry], due: bool) -> None:
    assert Compactor(CompactionOptions(reserve_tokens=10_000)).is_due(tokens_of(entries), MODEL) is due
