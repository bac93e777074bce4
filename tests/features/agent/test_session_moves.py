"""Going to another place of the tree, forking, taking back, answering anew: in the one order, and not at all where a gate says no."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from features.agent import AgentSession, RetryOptions
from features.agent.testing import FunctionTool, answers, call, fails, hangs
from features.contracts.errors import PumiceError, SessionBusyError, UserMustAct
from features.contracts.extension_events import BeforeTree, ExtensionEvent, GateEvent, TreeMoved
from features.contracts.messages import BranchSummaryMessage
from features.contracts.models import Model
from features.contracts.sessions import MessageEntry, SessionEntry
from features.contracts.testing import sequential_ids
from features.sessions import SessionManager
from tests.features.agent.rig import SCOPE, Rig, check_results, roles, say, texts, until

MakeRig = Callable[..., Rig]
OTHER = Model(provider="scripted", id="other", api="scripted", reasoning=True)


def hears(session: AgentSession, *, refuse: bool = False, act: Callable[[ExtensionEvent], None] = lambda _: None) -> list[str]:
    """The names of the events that the session tells its extensions, each with what was going on then."""
    heard: list[str] = []

    async def tell(event: ExtensionEvent) -> None:
        heard.append(f"{event.name} running" if session.running else event.name)
        if refuse and isinstance(event, GateEvent):
            event.cancel("the office is closed")
        act(event)

    session.moves.tell = tell
    return heard


def said(session: AgentSession) -> list[str]:
    return [texts(message) for message in session.manager.messages]


async def test_undo_goes_back_to_before_what_was_said_last(rig: MakeRig) -> None:
    """And gives the text, to be said otherwise; what was said stays in the tree."""
    r = rig(answers("one"), answers("two"), answers("three"))
    session = await r.open()
    await session.prompt(say("first"))
    await session.prompt(say("second"))
    heard = hears(session)

    assert await session.undo() == "second"
    assert said(session) == ["first", "one"]
    assert heard == ["session_before_tree", "session_tree"]
    await session.prompt(say("third"))
    assert [texts(message) for message in r.provider.requests[-1].messages] == ["first", "one", "third"]
    assert len(session.manager.entries) == 7
    await session.undo()
    assert await session.undo() == "first"
    with pytest.raises(UserMustAct, match="nothing to take back"):
        await session.undo()


async def test_retry_answers_what_was_said_last_once_more(rig: MakeRig) -> None:
    """The prompt is not said twice; the first answer stays beside the second."""
    r = rig(fails("server", error="down"), answers("better"))
    session = await r.open(retry=RetryOptions(max_attempts=0))
    await session.prompt(say("question", "m1"))
    outcome = await session.retry()

    assert outcome is not None
    assert (outcome.outcome, outcome.text, outcome.source_ids) == ("success", "better", ())
    assert said(session) == ["question", "better"]
    assert len(session.manager.entries) == 4
    r.provider.check()


async def test_a_move_stops_the_run_after_the_gate_and_before_the_change(rig: MakeRig) -> None:
    """What the run had said is kept on the branch that is left."""
    r = rig(answers("one"), hangs("half"))
    session = await r.open()
    await session.prompt(say("first"))
    run = asyncio.create_task(session.prompt(say("second")))
    await until(lambda: r.provider.open_streams == 1)
    heard = hears(session)
    await session.undo()
    outcome = await run

    assert outcome is not None
    assert outcome.outcome == "aborted"
    assert heard == ["session_before_tree running", "session_tree"]
    assert said(session) == ["first", "one"]
    left = [entry.message for entry in session.manager.entries if isinstance(entry, MessageEntry)]
    assert roles(left) == ["user", "assistant(stop)", "user", "assistant(aborted)"]


@pytest.mark.parametrize("move", ["undo", "retry", "move_to", "fork"])
async def test_a_refused_gate_changes_nothing(rig: MakeRig, move: str) -> None:
    """Neither the run nor the place; the reason is the person's to read."""
    r = rig(answers("one"), hangs("half"))
    session = await r.open()
    await session.prompt(say("first"))
    run = asyncio.create_task(session.prompt(say("second")))
    await until(lambda: r.provider.open_streams == 1)
    heard = hears(session, refuse=True)
    leaf, count = session.manager.leaf_id, len(session.manager.entries)
    moves: dict[str, Callable[[], Any]] = {
        "undo": session.undo,
        "retry": session.retry,
        "move_to": lambda: session.move_to(None),
        "fork": session.fork,
    }
    with pytest.raises(UserMustAct, match="the office is closed"):
        await moves[move]()

    assert session.running
    assert (session.manager.leaf_id, len(session.manager.entries)) == (leaf, count)
    assert len(heard) == 1
    assert len(await r.store.list()) == 1
    await session.abort()
    await run


async def test_switching_and_deleting_ask_too(rig: MakeRig) -> None:
    """They are the host's to do; the session only says whether they may be done."""
    session = await rig().open()
    hears(session)
    await session.moves.ask_to_switch("new", None)
    await session.moves.ask_to_delete(session.id)
    hears(session, refuse=True)
    with pytest.raises(UserMustAct, match="I stay in this session: the office is closed"):
        await session.moves.ask_to_switch("resume", "other")
    with pytest.raises(UserMustAct, match="Nothing was deleted"):
        await session.moves.ask_to_delete(session.id)


async def test_a_fork_is_a_session_of_its_own(rig: MakeRig) -> None:
    """With the branch up to the entry and its names; the present session stays as it is."""
    r = rig(answers("one"), answers("two"))
    session = await r.open()
    await session.prompt(say("first"))
    answer = session.manager.leaf_id
    assert answer is not None
    await session.label(answer, "start")
    await session.prompt(say("second"))
    whole = await r.open(session_id=await session.fork())
    part = await r.open(session_id=await session.fork(answer))
    before = await r.open(session_id=await session.moves.fork(answer, before=True))

    assert said(whole) == said(session) == ["first", "one", "second", "two"]
    assert (said(part), said(before)) == (["first", "one"], ["first"])
    assert dict(part.manager.labels) == {answer: "start"}
    assert dict(before.manager.labels) == {}
    assert part.manager.header.parent_session == session.id
    assert await r.store.current(SCOPE) == session.id
    with pytest.raises(KeyError):
        await session.fork("nowhere")
    with pytest.raises(UserMustAct, match="empty"):
        await (await rig().open()).fork()


async def test_notes_on_what_is_left_come_along(rig: MakeRig) -> None:
    """The model writes them; they stand where the conversation goes on, and carry the name of the place."""
    r = rig(answers("one"), answers("two"), answers("they tried two"))
    session = await r.open()
    await session.prompt(say("first"))
    place = session.manager.leaf_id
    await session.prompt(say("second"))
    seen: list[Sequence[SessionEntry]] = []
    hears(session, act=lambda event: seen.append(event.leaving) if isinstance(event, BeforeTree) else None)
    await session.move_to(place, summarise=True, label="back")

    last = session.manager.messages[-1]
    assert isinstance(last, BranchSummaryMessage)
    assert "they tried two" in last.summary
    assert said(session)[:2] == ["first", "one"]
    assert list(session.manager.labels.values()) == ["back"]
    assert [len(leaving) for leaving in seen] == [2]
    r.provider.check()


async def test_an_extension_may_write_the_notes(rig: MakeRig) -> None:
    """The model is not asked then; without a wish for notes they are not taken."""
    r = rig(answers("one"))
    session = await r.open()
    await session.prompt(say("first"))

    def write(event: ExtensionEvent) -> None:
        if isinstance(event, BeforeTree):
            event.summary = "my own notes"

    hears(session, act=write)
    await session.move_to(None, summarise=True)
    assert [getattr(message, "summary", None) for message in session.manager.messages] == ["my own notes"]
    await session.move_to(None)
    assert session.manager.messages == []


async def test_notes_that_cannot_be_had_leave_everything_in_its_place(rig: MakeRig) -> None:
    """Better to stay than to lose what was tried."""
    r = rig(answers("one"), fails("auth", error="no key"))
    session = await r.open()
    await session.prompt(say("first"))
    heard = hears(session)
    with pytest.raises(PumiceError):
        await session.move_to(None, summarise=True)

    assert said(session) == ["first", "one"]
    assert heard == ["session_before_tree"]
    assert not session.moves.going_on


async def test_no_run_begins_while_the_place_changes(rig: MakeRig) -> None:
    """Its prompt would end up on a branch that nobody is on."""
    r = rig(answers("one"), hangs())
    session = await r.open()
    await session.prompt(say("first"))
    move = asyncio.create_task(session.move_to(None, summarise=True))
    await until(lambda: r.provider.open_streams == 1)
    with pytest.raises(SessionBusyError):
        await session.prompt(say("second"))
    move.cancel()
    with pytest.raises(UserMustAct, match="as it was"):
        await move

    assert said(session) == ["first", "one"]


async def test_model_and_level_are_those_of_the_branch(rig: MakeRig) -> None:
    """As they would be after a restart there."""
    r = rig(answers("one"), answers("two"), models=[OTHER])
    session = await r.open()
    await session.prompt(say("first"))
    place = session.manager.leaf_id
    await session.set_model(OTHER.reference)
    await session.set_thinking("high")
    await session.prompt(say("second"))
    after = session.manager.leaf_id
    await session.move_to(place)
    assert (session.model.id, session.thinking) == ("one", "off")
    await session.move_to(after)

    assert (session.model.id, session.thinking) == ("other", "high")
    reopened = await r.open(session_id=session.id)
    assert (reopened.model, reopened.thinking) == (session.model, session.thinking)


async def test_going_where_one_is_is_no_move(rig: MakeRig) -> None:
    """No gate, no event, no entry."""
    r = rig(answers("one"))
    session = await r.open()
    await session.prompt(say("first"))
    heard = hears(session)
    await session.move_to(session.manager.leaf_id)
    with pytest.raises(KeyError):
        await session.move_to("nowhere")

    assert heard == []


async def test_calls_that_a_move_leaves_without_results_get_them(rig: MakeRig) -> None:
    """One may go to any entry, also between a call and its result."""
    r = rig(answers(call("c1", "quick")), answers("one"), answers("two"), tools=[FunctionTool("quick")])
    session = await r.open()
    await session.prompt(say("first"))
    calling = session.manager.branch()[-3].id
    await session.move_to(calling)
    await session.prompt(say("second"))

    check_results(session.manager.messages)
    manager = await SessionManager.open(r.store, session.id, clock=r.clock, ids=sequential_ids())
    check_results(manager.messages)


async def test_what_moved_is_told_from_where_to_where(rig: MakeRig) -> None:
    """Observers keep views of their own."""
    r = rig(answers("one"))
    session = await r.open()
    await session.prompt(say("first"))
    leaf = session.manager.leaf_id
    moved: list[tuple[str | None, str | None]] = []
    hears(session, act=lambda event: moved.append((event.old_leaf, event.new_leaf)) if isinstance(event, TreeMoved) else None)
    await session.move_to(None)

    assert moved == [(leaf, None)]
