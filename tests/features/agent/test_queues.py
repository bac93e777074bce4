"""What is said while a run is going on."""

import asyncio
from collections.abc import Callable

import pytest

from features.agent.testing import FunctionTool, answers, call, fails
from features.contracts.errors import SessionBusyError
from features.contracts.events import QueueUpdate, SessionEvent, TurnEnd
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.features.agent.rig import SECRET, Rig, check_grammar, roles, say, texts, until

MakeRig = Callable[..., Rig]


async def test_a_second_prompt_without_a_word_on_queueing_is_refused(rig: MakeRig) -> None:
    """Two runs of one session would mix up their messages."""
    r = rig(answers("one"))
    session = await r.open()
    first = asyncio.create_task(session.prompt(say("a")))
    await until(lambda: session.running)

    with pytest.raises(SessionBusyError):
        await session.prompt(say("b"))
    await first
    assert not session.running


async def test_prompts_at_the_same_instant_start_one_run(rig: MakeRig) -> None:
    """Nothing is awaited between the look at the session and taking it."""
    r = rig(answers("one"))
    session = await r.open()
    results = await asyncio.gather(*(session.prompt(say(str(n))) for n in range(5)), return_exceptions=True)

    assert sum(isinstance(result, SessionBusyError) for result in results) == 4
    assert [texts(message) for message in session.manager.messages] == ["0", "one"]


async def test_queued_messages_join_one_at_a_time_steering_first(rig: MakeRig) -> None:
    """pi's order: the first steering message before the first model call, then the next, then the follow-up."""
    r = rig(answers("a1"), answers("a2"), answers("a3"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u", "u")))
    await asyncio.sleep(0)
    for prompt, how in ((say("S1", "s1"), "steer"), (say("S2", "s2"), "steer"), (say("F", "f"), "follow_up")):
        assert await session.prompt(prompt, when_busy=how) is None  # type: ignore[arg-type]
    assert [prompt.text for prompt in session.queued] == ["S1", "S2", "F"]
    outcome = await run

    assert outcome is not None
    assert [texts(message) for message in session.manager.messages] == ["u", "S1", "a1", "S2", "a2", "F", "a3"]
    assert outcome.source_ids == ("u", "s1", "s2", "f")
    assert outcome.text == "a1\n\na2\n\na3"
    assert session.queued == ()


async def test_a_queue_may_join_as_a_whole(rig: MakeRig) -> None:
    """A host can prefer one answer to everything that piled up."""
    r = rig(answers("a1"), answers("a2"))
    session = await r.open(steering_mode="all", follow_up_mode="all")
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    for text, how in (("S1", "steer"), ("S2", "steer"), ("F1", "follow_up"), ("F2", "follow_up")):
        await session.prompt(say(text), when_busy=how)  # type: ignore[arg-type]
    await run

    assert [texts(message) for message in session.manager.messages] == ["u", "S1", "S2", "a1", "F1", "F2", "a2"]


async def test_steering_waits_for_the_tools_of_the_turn(rig: MakeRig) -> None:
    """A call that the model made is answered before anybody else speaks; no call is skipped."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow(invocation: ToolInvocation) -> ToolResult:
        entered.set()
        await go.wait()
        return text_result("slow done")

    r = rig(answers(call("c1", "slow"), call("c2", "quick")), answers("ok"), tools=[FunctionTool("slow", slow), FunctionTool("quick")])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await entered.wait()
    await session.prompt(say("S"), when_busy="steer")
    go.set()
    await run

    assert roles(session.manager.messages) == ["user", "assistant(toolUse)", "toolResult", "toolResult", "user", "assistant(stop)"]


async def test_what_is_said_at_the_end_of_a_turn_still_joins(rig: MakeRig) -> None:
    """There is no moment at which a message is accepted and then forgotten."""
    r = rig(answers("a1"), answers("a2"))
    session = await r.open()
    said: list[asyncio.Task[object]] = []

    def speak(event: SessionEvent) -> None:
        if isinstance(event, TurnEnd) and not said:
            session._state.queues.put(say("late"), "steer")
            said.append(asyncio.ensure_future(asyncio.sleep(0)))

    session.subscribe(speak)
    await session.prompt(say("u"))

    assert [texts(message) for message in session.manager.messages] == ["u", "a1", "late", "a2"]
    assert session.queued == ()


async def test_queues_survive_a_failed_run_and_join_the_next(rig: MakeRig) -> None:
    """A message that somebody sent is not dropped because the run before it broke."""
    r = rig(fails("auth"), answers("a1"), answers("a2"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    await session.prompt(say("F", "f"), when_busy="follow_up")
    outcome = await run
    assert outcome is not None
    assert outcome.outcome == "error"
    assert [prompt.text for prompt in session.queued] == ["F"]
    again = await session.prompt(say("v", "v"))

    assert again is not None
    assert again.source_ids == ("v", "f")


async def test_the_host_can_take_back_what_waits(rig: MakeRig) -> None:
    """After a stop, the messages go back to where the host keeps them."""
    r = rig(answers("a1"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    await session.prompt(say("F"), when_busy="follow_up")
    await session.prompt(say("S"), when_busy="steer")
    taken = session.take_queued()
    await run

    assert [prompt.text for prompt in taken] == ["S", "F"]
    assert session.take_queued() == ()
    assert [texts(message) for message in session.manager.messages] == ["u", "a1"]


async def test_a_full_queue_refuses(rig: MakeRig) -> None:
    """Every queue is bounded; the caller keeps the message."""
    r = rig(answers("a1"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    for n in range(64):
        await session.prompt(say(str(n)), when_busy="follow_up")

    with pytest.raises(SessionBusyError, match="64"):
        await session.prompt(say("one too many"), when_busy="follow_up")
    assert len(session.take_queued()) == 64
    await run


async def test_listeners_hear_what_waits(rig: MakeRig) -> None:
    """A host shows the queue; secrets in it are hidden like everywhere."""
    r = rig(answers("a1"), answers("a2"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    await session.prompt(say(f"use {SECRET}"), when_busy="follow_up")
    await run

    updates = [event for event in r.events if isinstance(event, QueueUpdate)]
    assert [update.follow_up for update in updates] == [["use [REDACTED]"], []]
    check_grammar(r.events)


async def test_a_stranger_who_joins_takes_the_owners_rights_away(rig: MakeRig) -> None:
    """Otherwise anybody in a group could steer an owner's run into a shell."""
    seen: list[bool] = []

    async def look(invocation: ToolInvocation) -> ToolResult:
        seen.append(invocation.context.owner)
        if len(seen) == 1:
            await session.prompt(say("and now run this", owner=False), when_busy="steer")
        if len(seen) == 2:
            await session.prompt(say("my turn", owner=True), when_busy="follow_up")
        return text_result("ok")

    r = rig(
        answers(call("c1", "look")), answers(call("c2", "look")), answers("done"), answers(call("c3", "look")), answers("done"),
        tools=[FunctionTool("look", look)],
    )  # fmt: skip
    session = await r.open()
    await session.prompt(say("u", owner=True))

    assert seen == [True, False, True]


async def test_an_owner_who_joins_lends_no_rights(rig: MakeRig) -> None:
    """The work that goes on is still somebody else's."""
    seen: list[bool] = []

    async def look(invocation: ToolInvocation) -> ToolResult:
        seen.append(invocation.context.owner)
        if len(seen) == 1:
            await session.prompt(say("good idea", owner=True), when_busy="steer")
        return text_result("ok")

    r = rig(answers(call("c1", "look")), answers(call("c2", "look")), answers("done"), tools=[FunctionTool("look", look)])
    session = await r.open()
    await session.prompt(say("u"))

    assert seen == [False, False]
