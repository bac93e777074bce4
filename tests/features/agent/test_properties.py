"""Whatever models, tools and people do, what must hold holds."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features.agent.testing import FunctionTool, Step, answers, breaks_off, call, fails, hangs, raises
from features.contracts.errors import ModelMustAct, OperatorMustAct
from features.contracts.messages import AssistantMessage, ToolCall, UserMessage
from features.contracts.sessions import MessageEntry
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.features.agent.rig import CountingStore, Rig, check_grammar, check_results, say, shown, texts, until

TOOLS = ("quick", "slow", "fails", "breaks", "alone", "ghost")
FAILURES = ("rate_limit", "overloaded", "server", "network", "auth", "overflow")


async def slow(invocation: ToolInvocation) -> ToolResult:
    for _ in range(len(invocation.id)):
        invocation.report("...")
        await asyncio.sleep(0)
    return text_result("slow done")


async def wrong(invocation: ToolInvocation) -> ToolResult:
    await asyncio.sleep(0)
    raise ModelMustAct("no")


async def broken(invocation: ToolInvocation) -> ToolResult:
    raise KeyError("broken")


def tools() -> list[FunctionTool]:
    return [
        FunctionTool("quick"),
        FunctionTool("slow", slow),
        FunctionTool("fails", wrong),
        FunctionTool("breaks", broken),
        FunctionTool("alone", slow, execution="sequential"),
    ]


@st.composite
def turns(draw: st.DrawFn) -> list[Step]:
    steps: list[Step] = []
    for turn in range(draw(st.integers(1, 5))):
        calls: list[ToolCall] = [
            call(f"t{turn}-{n}" + "x" * draw(st.integers(0, 4)), name, invalid="{" if draw(st.booleans()) and name == "quick" else None)
            for n, name in enumerate(draw(st.lists(st.sampled_from(TOOLS), max_size=4)))
        ]
        blocks: tuple[str | ToolCall, ...] = (*draw(st.lists(st.text(max_size=12), max_size=2)), *calls)
        kind = draw(st.sampled_from(["answers"] * 6 + ["length", "fails", "breaks_off", "raises", "hangs"]))
        match kind:
            case "fails":
                steps.append(fails(draw(st.sampled_from(FAILURES)), *blocks, retry_after_s=draw(st.sampled_from([None, 1.0, 100.0]))))
            case "breaks_off":
                steps.append(breaks_off(*blocks))
            case "raises":
                steps.append(raises(ValueError("no")))
            case "hangs":
                steps.append(hangs(*blocks))
            case "length":
                steps.append(answers(*blocks, stop_reason="length"))
            case _:
                steps.append(answers(*blocks))
    return steps


@st.composite
def doings(draw: st.DrawFn) -> list[tuple[int, str]]:
    """What people do, each after so many steps of the loop."""
    return draw(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["steer", "follow_up", "model"])), max_size=4))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=turns(),
    people=doings(),
    stop_after=st.integers(0, 250),
    how=st.sampled_from(["abort", "cancel", "close"]),
    full_at=st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 6]),
)
def test_every_call_has_one_result_and_every_start_its_end(
    steps: list[Step], people: list[tuple[int, str]], stop_after: int, how: str, full_at: int
) -> None:
    """Random answers, tools, failures, queued messages, full disks and stops: the transcript and the events stay whole."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(one_run(Path(folder), steps, people, stop_after, how, full_at))


async def one_run(folder: Path, steps: list[Step], people: list[tuple[int, str]], stop_after: int, how: str, full_at: int) -> None:
    store = CountingStore(lambda commit: OperatorMustAct("full. Make room.") if commit == full_at else None)
    r = Rig(folder, *steps, *[answers("end")] * 20, tools=tools(), store=store)
    session = await r.open(max_turns=6)
    run = asyncio.create_task(session.prompt(say("u", "m0")))
    await asyncio.sleep(0)
    said = {"u"}
    for step in range(stop_after):
        for number, (after, doing) in enumerate(people):
            if after == step and session.running:
                if doing == "model":
                    with suppress(OperatorMustAct):
                        await session.set_model("scripted/one")
                else:
                    said.add(f"p{number}")
                    await session.prompt(say(f"p{number}", f"m{number + 1}"), when_busy=doing)  # type: ignore[arg-type]
        if r.clock.sleepers:
            await r.clock.advance(100)
        await asyncio.sleep(0)
    if how == "cancel":
        run.cancel()
    elif how == "close":
        await session.close()
    else:
        await session.abort()
    await until(run.done)
    [outcome] = await asyncio.gather(run, return_exceptions=True)

    check_grammar(r.events)
    assert not session.running
    assert r.provider.open_streams == 0
    stored = [entry.message for entry in session.manager.branch() if isinstance(entry, MessageEntry)]  # also what has been summed up
    stored_prompts = {texts(m) for m in stored if isinstance(m, UserMessage)}
    assert not isinstance(outcome, Exception)
    waiting = {prompt.text for prompt in session.queued}
    assert stored_prompts.isdisjoint(waiting)
    if not full_at:
        assert stored_prompts | waiting == said
        check_results(session.manager.messages)
        check_results(stored)
        kept = "".join(texts(m) for m in stored if isinstance(m, AssistantMessage) and m.stop_reason != "error")
        assert shown(r.events) == kept
    reopened = await r.open()
    r.provider._steps[:] = [answers("next")]
    last = await reopened.prompt(say("v"))
    if last is not None and last.outcome == "success":
        check_results(reopened.manager.messages)
    assert asyncio.all_tasks() == {asyncio.current_task()}
