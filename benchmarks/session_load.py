"""What it costs to open a session of 10,000 entries, and to build the context of one short branch in it.

``python -m benchmarks.session_load``
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.measure import percentile, report
from features.contracts.database import Transaction
from features.contracts.messages import AssistantMessage, TextBlock, ToolCall, ToolResultMessage, Usage, UserBlock, UserMessage
from features.contracts.sessions import MessageEntry, SessionHeader
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore, SessionManager
from features.storage import Database

T = TypeVar("T")

_ENTRIES = 10_000
_TIMES = 9
_TIME = "2026-01-05T09:00:00.000Z"
_WORDS = "what was said here is about as long as a sentence in a chat tends to be. " * 3


def main() -> None:
    asyncio.run(_measure())


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Database(Path(folder) / "state.db", [SESSION_MIGRATIONS]) as database:
            store = DatabaseSessionStore(database)
            await store.create("web:a", SessionHeader(version=3, id="one", timestamp=_TIME, cwd="/"))
            await store.append("one", _entries(), leaf=f"e{_ENTRIES - 1}")
            reads = _Counted(database)
            counted = DatabaseSessionStore(reads)
            spent = []
            manager: SessionManager | None = None
            for _ in range(_TIMES):
                manager = None  # what the last one cost to forget is not counted
                before = time.process_time()
                manager = await SessionManager.open(counted, "one", clock=FakeClock(), ids=sequential_ids())
                spent.append(time.process_time() - before)
            report("open 10,000 entries, reads of the database", f"{reads.count / _TIMES:.0f}", "1")
            report("open 10,000 entries, CPU", f"{percentile(spent, 0.5) * 1000:.0f} ms", "at most 50 ms")
            assert manager is not None
            short = await _branching(manager, "e19")
            full = await _branching(manager, f"e{_ENTRIES - 1}")
            report("go to a branch of 20 entries over one of 10,000, CPU", f"{short / full:.2f}", "at most 0.1")


async def _branching(manager: SessionManager, entry_id: str) -> float:
    """CPU seconds of building the context there, without the database."""
    spent = []
    for _ in range(_TIMES):
        await manager.branch_to(None)
        before = time.thread_time()
        await manager.branch_to(entry_id)
        spent.append(time.thread_time() - before)
    return percentile(spent, 0.5)


def _entries() -> list[MessageEntry]:
    """Turns of four: asked, called, resulted, answered."""
    usage = Usage(input=1000, output=50, total_tokens=1050)
    entries = []
    for number in range(_ENTRIES):
        parent = f"e{number - 1}" if number else None
        entries.append(MessageEntry(id=f"e{number}", parent_id=parent, timestamp=_TIME, message=_message(number, usage)))
    return entries


def _message(number: int, usage: Usage) -> UserMessage | AssistantMessage | ToolResultMessage:
    at = 1_767_603_600_000 + number
    match number % 4:
        case 0:
            return UserMessage(content=_WORDS, timestamp=at)
        case 1:
            return _assistant(ToolCall(id=f"call-{number}", name="bash", arguments={"command": "ls -la"}), usage, at)
        case 2:
            content: list[UserBlock] = [TextBlock(text=_WORDS * 4)]
            return ToolResultMessage(tool_call_id=f"call-{number - 1}", tool_name="bash", content=content, is_error=False, timestamp=at)
        case _:
            return _assistant(TextBlock(text=_WORDS * 2), usage, at)


def _assistant(block: TextBlock | ToolCall, usage: Usage, at: int) -> AssistantMessage:
    return AssistantMessage(
        content=[block], api="anthropic-messages", provider="anthropic", model="claude", usage=usage, stop_reason="stop", timestamp=at
    )


class _Counted:
    """The database, with its reads counted."""

    def __init__(self, database: Database) -> None:
        self.count = 0
        self._database = database
        self.write = database.write

    async def read(self, work: Callable[[Transaction], T]) -> T:
        self.count += 1
        return await self._database.read(work)


if __name__ == "__main__":
    main()
