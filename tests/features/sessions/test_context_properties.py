"""Random trees: what is kept up to date step by step equals what is built from scratch, and survives a restart."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features.contracts.messages import AssistantMessage, BranchSummaryMessage, CompactionSummaryMessage, CustomMessage, Message
from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    SessionStore,
    ThinkingLevelChangeEntry,
)
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore, MemorySessionStore, SessionManager
from features.sessions.testing import TIMESTAMP, append_message, assistant, user
from features.storage import Database

TIMESTAMP_MS = 1767603600000

KINDS = [
    "user",
    "assistant",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "model",
    "thinking",
    "name",
    "move",
    "graft",
    "made",
]
# `characters` makes lone surrogates too, unlike `text` by itself.
STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.text(st.characters(), max_size=5), st.integers(min_value=-1, max_value=40)), max_size=30
)


def rebuilt(entries: Sequence[SessionEntry], leaf: str | None) -> tuple[list[Message], tuple[str, str] | None, str]:
    """pi's rules (buildSessionContext), written as they are stated and slow."""
    path: list[SessionEntry] = []
    while leaf is not None:
        entry = next(entry for entry in entries if entry.id == leaf)
        path.insert(0, entry)
        leaf = entry.parent_id
    model, thinking = None, "off"
    for entry in path:
        if isinstance(entry, ThinkingLevelChangeEntry):
            thinking = entry.thinking_level
        if isinstance(entry, ModelChangeEntry):
            model = (entry.provider, entry.model_id)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            model = (entry.message.provider, entry.message.model)
    messages: list[Message] = []
    compactions = [entry for entry in path if isinstance(entry, CompactionEntry)]
    if compactions:
        last = compactions[-1]
        messages.append(CompactionSummaryMessage(summary=last.summary, tokens_before=last.tokens_before, timestamp=TIMESTAMP_MS))
        before, after = path[: path.index(last)], path[path.index(last) + 1 :]
        while before and before[0].id != last.first_kept_entry_id:
            before.pop(0)
        path = before + after
    for entry in path:
        if isinstance(entry, MessageEntry):
            messages.append(entry.message)
        if isinstance(entry, CustomMessageEntry):
            messages.append(
                CustomMessage(custom_type=entry.custom_type, content=entry.content, display=entry.display, timestamp=TIMESTAMP_MS)
            )
        if isinstance(entry, BranchSummaryEntry) and entry.summary:
            messages.append(BranchSummaryMessage(summary=entry.summary, from_id=entry.from_id, timestamp=TIMESTAMP_MS))
    return messages, model, thinking


def _entry(kind: str, text: str, some_id: str, place: dict[str, Any]) -> SessionEntry:
    match kind:
        case "compaction":
            return CompactionEntry(summary=text, first_kept_entry_id=some_id, tokens_before=len(text), **place)
        case "branch_summary":
            return BranchSummaryEntry(summary=text, from_id=some_id, **place)
        case "custom":
            return CustomEntry(custom_type=text, data=[text], **place)
        case "custom_message":
            return CustomMessageEntry(custom_type="c", content=text, display=True, **place)
        case "label":
            return LabelEntry(target_id=some_id, label=text, **place)
        case _:
            return MessageEntry(message=user(text), **place)


async def _step(manager: SessionManager, number: int, kind: str, text: str, index: int) -> None:
    some_id = manager.entries[index % len(manager.entries)].id if index >= 0 and manager.entries else None
    match kind:
        case "user":
            await append_message(manager, user(text))
        case "assistant":
            await append_message(manager, assistant(text, model=f"p/{index}"))
        case "model":
            await manager.set_model("p", text)
        case "thinking":
            await manager.set_thinking("high" if index % 2 else "off")
        case "name":
            await manager.set_name(text)
        case "move":
            await manager.branch_to(some_id)
        case "made":
            made = [manager.new_message_entry(user(text)), manager.new_message_entry(user(text))]
            await manager.set_thinking("low")
            await manager.append(made)
        case "graft":
            first = _entry("user", text, "", {"id": f"x{number}", "parent_id": some_id, "timestamp": TIMESTAMP})
            second = _entry("custom", text, "", {"id": f"y{number}", "parent_id": first.id, "timestamp": TIMESTAMP})
            await manager.append([first, second])
        case _:
            place = {"id": f"x{number}", "parent_id": manager.leaf_id, "timestamp": TIMESTAMP}
            await manager.append([_entry(kind, text, some_id or "", place)])


async def _walk(store: SessionStore, steps: Sequence[tuple[str, str, int]]) -> None:
    manager = await SessionManager.create(store, "web:a", clock=FakeClock(), ids=sequential_ids(), cwd="/")
    for number, (kind, text, index) in enumerate(steps):
        await _step(manager, number, kind, text, index)
        assert (manager.messages, manager.model, manager.thinking) == rebuilt(manager.entries, manager.leaf_id)

    reopened = await SessionManager.open(store, manager.id, clock=FakeClock(), ids=sequential_ids())
    assert list(reopened.entries) == list(manager.entries)
    assert (reopened.messages, reopened.model, reopened.thinking) == (manager.messages, manager.model, manager.thinking)
    assert (reopened.leaf_id, reopened.name, reopened.branch()) == (manager.leaf_id, manager.name, manager.branch())


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_the_context_kept_step_by_step_is_the_one_built_from_scratch(steps: list[tuple[str, str, int]]) -> None:
    """The short cut that makes a turn cheap must never show another conversation."""
    asyncio.run(_walk(MemorySessionStore(), steps))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_restart_gives_the_same_context(steps: list[tuple[str, str, int]]) -> None:
    """Through the database: its text form loses nothing that matters."""

    async def run(folder: Path) -> None:
        async with Database(folder / "state.db", [SESSION_MIGRATIONS]) as database:
            await _walk(DatabaseSessionStore(database), steps)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
