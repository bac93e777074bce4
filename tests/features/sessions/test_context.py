"""What the model reads of a branch, case by case (pi's own test cases)."""

from collections.abc import Sequence

import pytest

from features.contracts.messages import BranchSummaryMessage, CompactionSummaryMessage, CustomMessage, Message, message_text
from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
)
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import MemorySessionStore, SessionManager
from features.sessions.testing import TIMESTAMP, assistant, header, said


def u(entry_id: str, text: str, parent: str | None) -> SessionEntry:
    return said(entry_id, text, parent=parent)


def a(entry_id: str, text: str, parent: str | None) -> SessionEntry:
    return MessageEntry(id=entry_id, parent_id=parent, timestamp=TIMESTAMP, message=assistant(text, model="anthropic/claude-test"))


def compaction(entry_id: str, summary: str, kept: str, parent: str) -> SessionEntry:
    return CompactionEntry(
        id=entry_id, parent_id=parent, timestamp=TIMESTAMP, summary=summary, first_kept_entry_id=kept, tokens_before=1000
    )


def branch_summary(entry_id: str, summary: str, parent: str | None) -> SessionEntry:
    return BranchSummaryEntry(id=entry_id, parent_id=parent, timestamp=TIMESTAMP, summary=summary, from_id="root")


def _told(message: Message) -> str:
    return message.summary if isinstance(message, CompactionSummaryMessage | BranchSummaryMessage) else message_text(message)


async def _opened(entries: Sequence[SessionEntry], leaf: str | None) -> SessionManager:
    store = MemorySessionStore()
    await store.create("web:a", header("s"))
    await store.append("s", entries, leaf=leaf)
    return await SessionManager.open(store, "s", clock=FakeClock(), ids=sequential_ids())


FOUR = [u("1", "hello", None), a("2", "hi", "1"), u("3", "how", "2"), a("4", "great", "3")]
COMPACTED = [
    u("1", "first", None),
    a("2", "r1", "1"),
    u("3", "second", "2"),
    a("4", "r2", "3"),
    compaction("5", "summary", "3", "4"),
    u("6", "third", "5"),
    a("7", "r3", "6"),
]
TWICE = [
    u("1", "a", None),
    a("2", "b", "1"),
    compaction("3", "first summary", "1", "2"),
    u("4", "c", "3"),
    a("5", "d", "4"),
    compaction("6", "second summary", "4", "5"),
    u("7", "e", "6"),
]
FORKED = [u("1", "start", None), a("2", "r", "1"), u("3", "branch A", "2"), u("4", "branch B", "2")]
COMPLEX = [
    u("1", "start", None),
    a("2", "r1", "1"),
    u("3", "q2", "2"),
    a("4", "r2", "3"),
    compaction("5", "compacted", "3", "4"),
    u("6", "q3", "5"),
    a("7", "r3", "6"),
    u("8", "wrong path", "3"),
    a("9", "wrong response", "8"),
    branch_summary("10", "tried wrong", "3"),
    u("11", "better approach", "10"),
]

CASES = {
    "nothing": ([], None, []),
    "one message": (FOUR[:1], "1", ["hello"]),
    "a plain exchange": (FOUR, "4", ["hello", "hi", "how", "great"]),
    "before the first entry": (FOUR, None, []),
    "an unknown leaf is the last entry": (FOUR[:2], "nonexistent", ["hello", "hi"]),
    "a missing parent ends the branch": ([FOUR[0], a("2", "orphan", "missing")], "2", ["orphan"]),
    "one compaction": (COMPACTED, "7", ["summary", "second", "r2", "third", "r3"]),
    "a compaction that kept all": ([*TWICE[:3], TWICE[3]], "4", ["first summary", "a", "b", "c"]),
    "the last compaction counts": (TWICE, "7", ["second summary", "c", "d", "e"]),
    "what was kept and is not on the branch": ([*FOUR[:2], compaction("3", "only this", "gone", "2")], "3", ["only this"]),
    "before a compaction it is not seen": (COMPACTED, "4", ["first", "r1", "second", "r2"]),
    "the first branch": (FORKED, "3", ["start", "r", "branch A"]),
    "the other branch": (FORKED, "4", ["start", "r", "branch B"]),
    "a branch summary": ([*FORKED[:3], branch_summary("4", "what A was", "2"), u("5", "on", "4")], "5", ["start", "r", "what A was", "on"]),
    "an empty branch summary": ([*FOUR[:1], branch_summary("2", "", "1")], "2", ["hello"]),
    "compacted branch of a forked tree": (COMPLEX, "7", ["compacted", "q2", "r2", "q3", "r3"]),
    "summarised branch of a forked tree": (COMPLEX, "11", ["start", "r1", "q2", "tried wrong", "better approach"]),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_context_is_that_of_the_branch(case: str) -> None:
    """Also when it is reached by moving there instead of loading it."""
    entries, leaf, expected = CASES[case]
    manager = await _opened(entries, leaf)

    assert [_told(message) for message in manager.messages] == expected
    assert all(message.timestamp for message in manager.messages)

    if leaf != "nonexistent":
        await manager.branch_to(None)
        assert manager.messages == []
        await manager.branch_to(leaf)
        assert [_told(message) for message in manager.messages] == expected


async def test_entries_that_are_not_for_the_model_stay_out() -> None:
    """State, labels and names are no conversation; a custom message is."""
    place = {"timestamp": TIMESTAMP}
    manager = await _opened(
        [
            u("1", "hello", None),
            CustomEntry(id="2", parent_id="1", custom_type="goal", data={}, **place),
            LabelEntry(id="3", parent_id="2", target_id="1", label="x", **place),
            SessionInfoEntry(id="4", parent_id="3", name="n", **place),
            CustomMessageEntry(id="5", parent_id="4", custom_type="note", content="mind this", display=False, details=[1], **place),
        ],
        "5",
    )

    note = CustomMessage(custom_type="note", content="mind this", display=False, details=[1], timestamp=1767603600000)
    assert manager.messages[1:] == [note]
    assert manager.name == "n"


async def test_model_and_thinking_are_the_branchs_last() -> None:
    """A model change, or an answer that another model gave; a compaction hides neither."""
    place = {"timestamp": TIMESTAMP}
    manager = await _opened(
        [
            u("1", "hello", None),
            ThinkingLevelChangeEntry(id="2", parent_id="1", thinking_level="high", **place),
            ModelChangeEntry(id="3", parent_id="2", provider="openai", model_id="gpt-4", **place),
            a("4", "hi", "3"),
            compaction("5", "s", "4", "4"),
        ],
        "5",
    )

    assert (manager.model, manager.thinking) == (("anthropic", "claude-test"), "high")
    await manager.branch_to("3")
    assert (manager.model, manager.thinking) == (("openai", "gpt-4"), "high")
    await manager.branch_to("1")
    assert (manager.model, manager.thinking) == (None, "off")
