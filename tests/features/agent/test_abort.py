"""Stopping a run, at any instant, by anybody."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

import pytest

from features.agent.testing import FunctionTool, answers, call, fails, hangs
from features.contracts.agent import RunOutcome
from features.contracts.events import AgentSettled, RetryEnd, RetryStart
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import PartialMessage, StreamEvent, StreamFailed, StreamStarted
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.features.agent.rig import Rig, check_grammar, check_results, roles, say, texts, until

MakeRig = Callable[..., Rig]


async def forever(invocation: ToolInvocation) -> ToolResult:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def test_stopping_in_the_stream_keeps_what_had_arrived(rig: MakeRig) -> None:
    """The person saw it, so the session must know it."""
    r = rig(hangs("Hello wo"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u", "m1")))
    await until(lambda: r.provider.open_streams == 1 and "M+assistant" in r.trace())
    for _ in range(10):
        await asyncio.sleep(0)
    assert await session.abort()
    outcome = await run

    assert outcome is not None
    assert (outcome.outcome, outcome.text, outcome.source_ids) == ("aborted", "Hello wo", ("m1",))
    assert roles(session.manager.messages) == ["user", "assistant(aborted)"]
    assert texts(session.manager.messages[-1]) == "Hello wo"
    assert r.provider.open_streams == 0
    check_grammar(r.events)


async def test_stopping_before_the_first_word_leaves_a_mark(rig: MakeRig) -> None:
    """Without it a restart would take the stopped prompt up again."""
    r = rig(hangs())
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.provider.open_streams == 1)
    await session.abort()
    await run

    assert roles(session.manager.messages) == ["user", "assistant(aborted)"]
    assert await session.resume(("m1",)) is None


async def test_stopping_tools_gives_every_call_a_result(rig: MakeRig) -> None:
    """Those that had ended keep theirs."""
    r = rig(answers(call("c1", "forever"), call("c2", "quick"), call("c3", "forever")),
            tools=[FunctionTool("forever", forever), FunctionTool("quick")])  # fmt: skip
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: "X-c2" in r.trace())
    await session.abort()
    outcome = await run

    assert outcome is not None
    assert outcome.outcome == "aborted"
    assert roles(session.manager.messages) == ["user", "assistant(toolUse)", *["toolResult"] * 3, "assistant(aborted)"]
    assert [getattr(message, "is_error", None) for message in session.manager.messages[2:5]] == [True, False, True]
    check_grammar(r.events)
    check_results(session.manager.messages)


async def test_stopping_sequential_tools_does_not_start_the_rest(rig: MakeRig) -> None:
    """Each still has its start, its end and its result."""
    later = FunctionTool("later")
    r = rig(answers(call("c1", "forever"), call("c2", "later")), tools=[FunctionTool("forever", forever, execution="sequential"), later])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: "X+c1" in r.trace())
    await session.abort()
    await run

    assert later.calls == []
    assert [word for word in r.trace() if word[0] == "X"] == ["X+c1", "X-c1!", "X+c2", "X-c2!"]
    check_results(session.manager.messages)


async def test_stopping_while_waiting_for_a_retry(rig: MakeRig) -> None:
    """The wait ends at once."""
    r = rig(fails("server"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: bool(r.clock.sleepers))
    await session.abort()
    outcome = await run

    assert outcome is not None
    assert outcome.outcome == "aborted"
    assert outcome.failure is None
    assert r.clock.sleepers == 0
    assert [e for e in r.events if isinstance(e, RetryEnd)] == [RetryEnd(success=False, attempt=1, final_error="stopped")]
    check_grammar(r.events)


async def test_stopping_when_nothing_goes_on_is_no_error(rig: MakeRig) -> None:
    """A person may press the button twice."""
    assert not await (await rig().open()).abort()


async def test_what_waits_is_kept_when_a_run_is_stopped(rig: MakeRig) -> None:
    """Stopping concerns this run alone."""
    r = rig(hangs("x"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.provider.open_streams == 1)
    await session.prompt(say("F"), when_busy="follow_up")
    await session.prompt(say("S"), when_busy="steer")
    await session.abort()
    await run

    assert [prompt.text for prompt in session.queued] == ["S", "F"]


async def test_what_waits_is_kept_when_tools_are_stopped(rig: MakeRig) -> None:
    """Nobody is put into a run that has been told to end."""
    r = rig(answers(call("c1", "forever")), tools=[FunctionTool("forever", forever)])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: "X+c1" in r.trace())
    await session.prompt(say("S"), when_busy="steer")
    await session.abort()
    await run

    assert [prompt.text for prompt in session.queued] == ["S"]


async def test_a_provider_that_calls_the_stop_a_failure_is_not_believed(rig: MakeRig) -> None:
    """Some clients turn a cancellation into a network error; it is neither shown as one nor retried."""

    async def step(model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = PartialMessage(api=model.api, provider=model.provider, model=model.id, timestamp=1)
        yield StreamStarted(partial=partial)
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        yield StreamFailed(message=partial.finish("error", error_message="connection lost"), kind="network")

    r = rig(step)
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: "M+assistant" in r.trace())
    await asyncio.sleep(0)
    await session.abort()
    outcome = await run

    assert outcome is not None
    assert (outcome.outcome, outcome.failure) == ("aborted", None)
    assert not [e for e in r.events if isinstance(e, RetryStart)]


async def test_cancelling_who_waits_for_the_outcome_stops_the_run(rig: MakeRig) -> None:
    """The run is finished properly before the cancellation goes on."""
    r = rig(hangs("Hello wo"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.provider.open_streams == 1)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert not session.running
    assert isinstance(r.events[-1], AgentSettled)
    assert roles(session.manager.messages) == ["user", "assistant(aborted)"]
    check_grammar(r.events)


async def test_cancelling_who_stops_the_run_does_not_undo_the_stop(rig: MakeRig) -> None:
    """The request was made; whether somebody waits for it is another matter."""
    r = rig(hangs("x"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.provider.open_streams == 1)
    stop = asyncio.create_task(session.abort())
    await asyncio.sleep(0)
    stop.cancel()
    outcome = await run

    assert outcome is not None
    assert outcome.outcome == "aborted"
    await asyncio.wait([stop])


async def test_a_tool_can_stop_its_own_run(rig: MakeRig) -> None:
    """It waits for a run that waits for it; the stop cuts the knot."""

    async def stop(invocation: ToolInvocation) -> ToolResult:
        await session.abort()
        return text_result("never")

    r = rig(answers(call("c1", "stop")), tools=[FunctionTool("stop", stop)])
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.outcome == "aborted"
    check_results(session.manager.messages)


async def test_a_tool_that_ignores_the_stop_does_not_hold_the_session(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    """It is given a few seconds; then its call has a result without it."""
    go = asyncio.Event()

    async def stubborn(invocation: ToolInvocation) -> ToolResult:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        return text_result("at last")

    r = rig(answers(call("c1", "stubborn")), tools=[FunctionTool("stubborn", stubborn)])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: "X+c1" in r.trace())
    stop = asyncio.create_task(session.abort())
    await until(lambda: bool(r.clock.sleepers))
    await r.clock.advance(5)
    assert await stop
    events = len(r.events)
    go.set()
    await run
    await asyncio.sleep(0)

    assert len(r.events) == events
    assert any("ignores" in record.message for record in caplog.records)
    check_grammar(r.events)
    check_results(session.manager.messages)


async def test_an_answer_that_is_complete_when_the_stop_comes_is_a_success(rig: MakeRig) -> None:
    """It is stored and owed; calling it aborted would hide it."""
    r = rig(answers("Hello."))
    session = await r.open()
    session._state.queues.put(say("F"), "follow_up")
    stops: list[asyncio.Task[bool]] = []
    original = session.manager.append

    async def append_and_stop(*args: object, **options: object) -> None:
        await original(*args, **options)  # type: ignore[arg-type]
        if r.store.commits == 2:
            stops.append(asyncio.create_task(session.abort()))
            await asyncio.sleep(0)

    session.manager.append = append_and_stop  # type: ignore[method-assign]
    outcome = await session.prompt(say("u"))
    await stops[0]

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "Hello.")
    assert [prompt.text for prompt in session.queued] == ["F"]


async def test_a_closed_session_takes_no_more(rig: MakeRig) -> None:
    """Closing stops the run first and may be done twice."""
    r = rig(hangs("x"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.provider.open_streams == 1)
    await session.close()
    await session.close()

    assert (await run) is not None
    with pytest.raises(RuntimeError, match="closed"):
        await session.prompt(say("v"))


def busy_script() -> list[object]:
    return [
        answers("Let me see.", call("c1", "slow"), call("c2", "quick"), call("c3", "ghost")),
        fails("server", "half"),
        answers("Then", call("c4", "slow")),
        answers("All done."),
        answers("And the rest."),
    ]


async def slow(invocation: ToolInvocation) -> ToolResult:
    for _ in range(3):
        invocation.report("working")
        await asyncio.sleep(0)
    return text_result("slow done")


async def drive(r: Rig, run: "asyncio.Task[RunOutcome | None]", steps: int) -> bool:
    """Let the loop work for a number of steps; whether the run was still going on then."""
    for _ in range(steps):
        if run.done():
            return False
        if r.clock.sleepers:
            await r.clock.advance(120)
        await asyncio.sleep(0)
    return not run.done()


@pytest.mark.parametrize("how", ["abort", "cancel", "cancel_twice", "cancel_everything"])
async def test_a_run_can_be_stopped_after_any_step(rig: MakeRig, how: str) -> None:
    """Whatever the instant: one result per call, every start has its end, settled last, free for the next prompt."""
    stopped = True
    steps = 0
    while stopped:
        r = Rig(rig().workspace, *busy_script(), tools=[FunctionTool("slow", slow), FunctionTool("quick")])  # type: ignore[arg-type]
        session = await r.open()
        before = asyncio.all_tasks()
        run = asyncio.create_task(session.prompt(say("u", "m1")))
        await asyncio.sleep(0)
        if session.running:
            await session.prompt(say("F", "m2"), when_busy="follow_up")
        stopped = await drive(r, run, steps)
        await stop_by(how, session, run, before)
        await until(lambda run=run: run.done())  # type: ignore[misc]

        check_grammar(r.events)
        assert not session.running
        if how != "cancel_everything":
            check_results(session.manager.messages)
            consumed = {texts(m) for m in session.manager.messages if roles([m]) == ["user"]}
            assert consumed | {prompt.text for prompt in session.queued} == {"u", "F"}
            assert roles(session.manager.messages)[-1] in ("assistant(aborted)", "assistant(stop)")
            assert await session.resume(("m1",)) is None
        session.take_queued()
        r.provider._steps[:] = [answers("next")]
        after = await session.prompt(say("v"))
        assert after is not None
        assert after.outcome == "success"
        check_results(session.manager.messages)
        assert asyncio.all_tasks() == before
        steps += 1
    assert steps > 40


async def stop_by(how: str, session: object, run: "asyncio.Task[RunOutcome | None]", before: "set[asyncio.Task[object]]") -> None:
    if how == "abort":
        await session.abort()  # type: ignore[attr-defined]
    elif how == "cancel_everything":
        for task in asyncio.all_tasks() - before:
            task.cancel()
    else:
        run.cancel()
        if how == "cancel_twice":
            await asyncio.sleep(0)
            run.cancel()
            await until(lambda: not session.running)  # type: ignore[attr-defined]
