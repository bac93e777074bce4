"""What is on the disk, when, and together with what."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from features.agent.testing import FunctionTool, answers, call
from features.contracts.agent import Prompt
from features.contracts.database import Migrations, Transaction
from features.contracts.errors import OperatorMustAct
from features.contracts.events import MessageEnd, SessionEvent, ToolExecutionEnd
from features.contracts.messages import AssistantMessage, ImageBlock, TextBlock, UserMessage
from features.contracts.sessions import MessageEntry, SessionEntry, TransactionWork
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore
from features.storage import Database
from tests.features.agent.rig import CountingStore, Rig, check_grammar, check_results, roles, say, until

MakeRig = Callable[..., Rig]
BOOKS = Migrations(slice="books", steps=(("CREATE TABLE book (run TEXT, entry TEXT, sources TEXT)",),))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(tmp_path / "state.db", [SESSION_MIGRATIONS, BOOKS]) as opened:
        yield opened


def books(run_id: str, entry: SessionEntry, source_ids: tuple[str, ...]) -> TransactionWork:
    def write(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO book VALUES (?, ?, ?)", (run_id, entry.id, ",".join(source_ids)))

    return write


async def test_the_hosts_books_are_written_with_each_entry(rig: MakeRig, database: Database) -> None:
    """One commit holds the entry and what the host notes about it; two commits a plain turn."""
    r = rig(answers("one"), answers("two"), store=DatabaseSessionStore(database))
    session = await r.open(journal=books)
    await session.prompt(say("a"))
    before = database.commits
    outcome = await session.prompt(say("b", "m1", "m2"))

    assert outcome is not None
    assert database.commits - before == 2
    rows = await database.read(lambda transaction: transaction.fetch_all("SELECT run, entry, sources FROM book"))
    entries = [entry.id for entry in session.manager.branch() if isinstance(entry, MessageEntry)]
    assert [row[1] for row in rows] == entries
    assert [row[2] for row in rows] == ["", "", "m1,m2", ""]
    assert [row[0] for row in rows][2:] == [outcome.run_id] * 2


async def test_several_entries_of_one_commit_are_all_booked(rig: MakeRig, database: Database) -> None:
    """Messages that join together keep their own ids."""
    r = rig(answers("one"), store=DatabaseSessionStore(database))
    session = await r.open(journal=books, steering_mode="all")
    run = asyncio.create_task(session.prompt(say("a", "m1")))
    await asyncio.sleep(0)
    await session.prompt(say("b", "m2"), when_busy="steer")
    await session.prompt(say("c", "m3"), when_busy="steer")
    await run

    rows = await database.read(lambda transaction: transaction.fetch_all("SELECT sources FROM book"))
    assert [row[0] for row in rows] == ["m1", "m2", "m3", ""]


async def test_a_message_is_announced_after_it_is_stored(rig: MakeRig) -> None:
    """Who hears of it may rely on it."""
    r = rig(answers(call("c1", "look")), answers("ok"), tools=[FunctionTool("look")])
    session = await r.open()
    seen: list[bool] = []

    def look(event: SessionEvent) -> None:
        if isinstance(event, MessageEnd):
            seen.append(session.manager.entry(event.entry_id).id == event.entry_id)

    session.subscribe(look)
    await session.prompt(say("u"))

    assert seen == [True] * 4


def full_disk_at(number: int) -> CountingStore:
    return CountingStore(lambda commit: OperatorMustAct("the disk is full. Make room.") if commit == number else None)


@pytest.mark.parametrize("commit", [1, 2, 3, 4])
async def test_a_full_disk_ends_the_run_and_says_so(rig: MakeRig, commit: int) -> None:
    """Prompt, answer, result or last answer: whatever cannot be kept, the run ends in order and the next one works."""
    r = rig(answers(call("c1", "look")), answers("ok"), tools=[FunctionTool("look")], store=full_disk_at(commit))
    session = await r.open()
    outcome = await session.prompt(say("u", "m1"))

    assert outcome is not None
    assert outcome.failure is not None
    assert (outcome.outcome, outcome.failure.kind, outcome.failure.message) == ("error", "storage", "the disk is full. Make room.")
    assert outcome.source_ids == (() if commit == 1 else ("m1",))
    check_grammar(r.events)
    r.provider._steps[:] = [answers("back")]
    again = await session.prompt(say("v"))
    assert again is not None
    assert again.outcome == "success"
    check_results(session.manager.messages)


async def test_an_answer_that_could_not_be_stored_is_taken_back_from_viewers(rig: MakeRig) -> None:
    """It is not part of the conversation, so nobody should believe that it is."""
    r = rig(answers("Hello."), store=full_disk_at(2))
    await (await r.open()).prompt(say("u"))

    [end] = [event for event in r.events if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage)]
    assert isinstance(end.message, AssistantMessage)
    assert (end.entry_id, end.message.stop_reason, end.message.content) == ("", "error", [])


async def test_tools_are_stopped_when_a_result_cannot_be_stored(rig: MakeRig) -> None:
    """Nothing goes on that nobody will know of."""
    stopped: list[str] = []

    async def forever(invocation: ToolInvocation) -> ToolResult:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            stopped.append(invocation.id)
            raise
        return text_result("never")

    r = rig(
        answers(call("c1", "quick"), call("c2", "forever")),
        tools=[FunctionTool("quick"), FunctionTool("forever", forever)],
        store=full_disk_at(3),
    )
    outcome = await (await r.open()).prompt(say("u"))

    assert outcome is not None
    assert outcome.outcome == "error"
    assert stopped == ["c2"]
    assert [event.tool_call_id for event in r.events if isinstance(event, ToolExecutionEnd)] == ["c1", "c2"]


async def test_a_queued_message_that_could_not_be_stored_waits_again(rig: MakeRig) -> None:
    """It was accepted, so it is not dropped."""
    r = rig(answers("ok"), store=full_disk_at(3))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    await session.prompt(say("F", "m2"), when_busy="follow_up")
    outcome = await run

    assert outcome is not None
    assert outcome.source_ids == ()
    assert outcome.text == "ok"
    assert [prompt.text for prompt in session.queued] == ["F"]


async def test_a_broken_journal_ends_the_run_with_an_error_id(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    """A defect of the host's is found by its id and holds nobody up."""

    def broken(run_id: str, entry: SessionEntry, source_ids: tuple[str, ...]) -> None:
        raise ZeroDivisionError

    r = rig()
    session = await r.open(journal=broken)
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.kind == "unknown"
    [record] = [record for record in caplog.records if record.message == "run failed"]
    assert getattr(record, "facts", {})["error_id"] in outcome.failure.message
    check_grammar(r.events)
    assert not session.running


async def test_pictures_come_after_the_text_and_may_stand_alone(rig: MakeRig) -> None:
    """A photo without a caption is a message too; its time is the sender's."""
    picture = ImageBlock(data="aGk=", mime_type="image/png")
    r = rig(answers("ok"), answers("ok"))
    session = await r.open()
    await session.prompt(Prompt(text="look", images=(picture,), timestamp=123))
    await session.prompt(Prompt(text="", images=(picture,), timestamp=124))

    messages = [message for message in session.manager.messages if isinstance(message, UserMessage)]
    assert messages == [
        UserMessage(content=[TextBlock(text="look"), picture], timestamp=123),
        UserMessage(content=[picture], timestamp=124),
    ]


async def test_names_and_models_may_change_while_a_run_writes(rig: MakeRig) -> None:
    """Entries that two tasks write follow each other; none ends up on a branch of its own."""
    r = rig(answers("a long answer"), answers("two"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.store.commits == 1)
    await asyncio.gather(session.set_name("n"), session.set_thinking("high"), session.set_model("scripted/one"))
    await run
    await session.prompt(say("v"))

    assert roles(session.manager.messages) == ["user", "assistant(stop)", "user", "assistant(stop)"]
    assert len(session.manager.branch()) == len(session.manager.entries)
