"""Where a branch is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.compaction.cut import Cut, find_cut
from features.contracts.messages import AssistantMessage, ToolCall, ToolResultMessage
from features.contracts.sessions import CustomMessageEntry, LabelEntry, MessageEntry, SessionEntry
from tests.features.compaction.builders import assistant, branch, call, compaction, result, user
from tests.features.compaction.pi_session import pi_session

NOTE = CustomMessageEntry(id="", parent_id=None, timestamp="", custom_type="x", content="note", display=True)
LABEL = LabelEntry(id="", parent_id=None, timestamp="", target_id="0", label="l")


def cut(entries: list[SessionEntry], keep: int) -> Cut:
    return find_cut(entries, 0, len(entries), keep_tokens=keep)


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (1_000, Cut(kept=1000, turn=1000)),
        (5_000, Cut(kept=1000, turn=1000)),
        (20_000, Cut(kept=946, turn=939)),
        (50_000, Cut(kept=790, turn=789)),
        (100_000, Cut(kept=690, turn=677)),
        (10**9, Cut(kept=0)),
    ],
)
def test_the_cuts_of_a_real_session(keep: int, expected: Cut) -> None:
    """The same as in the program that wrote it."""
    assert cut(pi_session(), keep) == expected


def test_ten_exchanges_are_cut_at_a_message() -> None:
    entries = branch(*[message for _ in range(10) for message in (user("x" * 2000), assistant("x" * 2000))])
    found = cut(entries, 2500)

    assert isinstance(entries[found.kept], MessageEntry)
    assert found.kept == 15


@pytest.mark.parametrize("entries", [branch(assistant("alone")), branch(user(), assistant(), user(), assistant())])
def test_what_fits_is_kept_whole(entries: list[SessionEntry]) -> None:
    assert cut(entries, 50_000).kept == 0


def test_a_turn_that_is_cut_in_the_middle_is_known_by_its_beginning() -> None:
    entries = branch(user(), assistant(), user("long"), assistant("x" * 400), assistant("x" * 400), assistant("x" * 400))

    assert cut(entries, 150) == Cut(kept=4, turn=2)


def test_what_directly_precedes_goes_with_what_is_kept() -> None:
    """A label or a model change belongs to the message behind it."""
    entries = branch(user(), assistant("x" * 400), LABEL, user("x" * 400))

    assert cut(entries, 100).kept == 2


def test_results_larger_than_what_may_be_kept_stay_with_their_calls() -> None:
    """The end of a long tool round is where compaction is needed most; everything before it can go."""
    entries = branch(user(), assistant(), user("go"), assistant(call("a"), call("b")), result("a", "x" * 9000), result("b", "x" * 9000))

    assert cut(entries, 100) == Cut(kept=3, turn=2)


def test_no_message_between_a_call_and_its_result_begins_what_is_kept() -> None:
    """Somebody's word may have come in between."""
    entries = branch(user(), assistant(call("a")), user("x" * 40), result("a", "x" * 400), user("x" * 400))

    assert cut(entries, 205).kept == 4


@st.composite
def branches(draw: st.DrawFn) -> list[SessionEntry]:
    """Anything that a store may hold: calls with their results near or far, what others put in between, compactions, results of nobody."""
    items: list[object] = []
    waiting: list[str] = []
    for number in range(draw(st.integers(0, 25))):
        size = draw(st.integers(0, 400))
        kind = draw(st.sampled_from(["user", "assistant", "calls", "result", "note", "label", "compaction", "orphan"]))
        if kind == "calls":
            ids = [f"{number}-{n}" for n in range(draw(st.integers(1, 3)))]
            waiting += ids
            items.append(assistant("x" * size, *map(call, ids), stop="toolUse"))
        elif kind == "result" and waiting:
            items.append(result(waiting.pop(draw(st.integers(0, len(waiting) - 1))), "x" * size))
        elif kind == "orphan":
            items.append(result(f"nobody-{number}", "x" * size))
        elif kind == "compaction" and items:
            items.append(compaction("s" * size, str(draw(st.integers(0, len(items) - 1)))))
        else:
            items.append({"note": NOTE, "label": LABEL, "assistant": assistant("x" * size)}.get(kind, user("x" * size)))
    return branch(*items)  # type: ignore[arg-type]


@given(branches(), st.integers(0, 500), st.data())
def test_a_cut_never_separates_a_call_from_its_result(entries: list[SessionEntry], keep: int, data: st.DataObject) -> None:
    """Whatever the branch looks like; a service refuses one without the other."""
    start = data.draw(st.integers(0, len(entries)))
    found = find_cut(entries, start, len(entries), keep_tokens=keep)
    called: set[str] = set()
    for index, entry in enumerate(entries[start : found.kept], start):
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            called |= {block.id for block in entry.message.content if isinstance(block, ToolCall)}
        assert index < found.kept
    for entry in entries[found.kept :]:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
            assert entry.message.tool_call_id not in called
    assert start <= found.kept <= len(entries)
    assert found.turn is None or start <= found.turn <= found.kept
