"""Tool calls: preparation, execution, results."""

import asyncio
from collections.abc import Callable

import pytest

from features.agent.testing import FunctionTool, answers, call
from features.contracts.errors import ModelMustAct
from features.contracts.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from features.contracts.messages import ToolResultMessage
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.features.agent.rig import Rig, check_grammar, check_results, say, texts, until

MakeRig = Callable[..., Rig]


def results(r: Rig, session_messages: object) -> dict[str, str]:
    assert isinstance(session_messages, list)
    return {message.tool_call_id: texts(message) for message in session_messages if isinstance(message, ToolResultMessage)}


class Gates:
    """Tools that overlap and end in the order in which the test opens them."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.running: list[str] = []

    async def __call__(self, invocation: ToolInvocation) -> ToolResult:
        self.running.append(invocation.id)
        self.gates[invocation.id] = asyncio.Event()
        await self.gates[invocation.id].wait()
        return text_result(f"{invocation.id} done")


async def test_calls_run_at_the_same_time_and_results_keep_their_order(rig: MakeRig) -> None:
    """Ends are told as they happen; the transcript has the order of the calls."""
    gates = Gates()
    r = rig(answers(call("c1", "wait"), call("c2", "wait"), call("c3", "wait")), answers("ok"), tools=[FunctionTool("wait", gates)])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: len(gates.running) == 3)
    for call_id in ("c3", "c1", "c2"):
        gates.gates[call_id].set()
        await until(lambda end=f"X-{call_id}": end in r.trace())  # type: ignore[misc]
    await run

    ends = [event.tool_call_id for event in r.events if isinstance(event, ToolExecutionEnd)]
    assert ends == ["c3", "c1", "c2"]
    assert list(results(r, session.manager.messages)) == ["c1", "c2", "c3"]
    check_grammar(r.events)


async def test_a_result_is_stored_as_soon_as_all_before_it_are(rig: MakeRig) -> None:
    """A crash loses no result that could have been kept."""
    gates = Gates()
    r = rig(answers(call("c1", "wait"), call("c2", "wait"), call("c3", "wait")), answers("ok"), tools=[FunctionTool("wait", gates)])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: len(gates.running) == 3)
    gates.gates["c2"].set()
    await until(lambda: "X-c2" in r.trace())
    before = list(results(r, session.manager.messages))
    gates.gates["c1"].set()
    await until(lambda: "c2" in results(r, session.manager.messages))
    after = list(results(r, session.manager.messages))
    gates.gates["c3"].set()
    await run

    assert (before, after) == ([], ["c1", "c2"])


async def test_one_sequential_tool_makes_the_whole_batch_sequential(rig: MakeRig) -> None:
    """A tool that changes shared things must not meet its siblings."""
    active: list[str] = []

    async def alone(invocation: ToolInvocation) -> ToolResult:
        assert not active
        active.append(invocation.id)
        await asyncio.sleep(0)
        active.remove(invocation.id)
        return text_result("ok")

    tools = [FunctionTool("a", alone), FunctionTool("b", alone, execution="sequential")]
    r = rig(answers(call("c1", "a"), call("c2", "b"), call("c3", "a")), answers("ok"), tools=tools)
    await (await r.open()).prompt(say("u"))

    assert [word for word in r.trace() if word[0] == "X"] == ["X+c1", "X-c1", "X+c2", "X-c2", "X+c3", "X-c3"]


async def test_a_tool_that_was_not_offered_is_answered_with_an_error(rig: MakeRig) -> None:
    """Its siblings run, and the model hears what there is."""
    known = FunctionTool("known")
    r = rig(answers(call("c1", "known"), call("c2", "ghost")), answers("ok"), tools=[known])
    session = await r.open()
    await session.prompt(say("u"))

    assert "ghost" in results(r, session.manager.messages)["c2"]
    assert "known" in results(r, session.manager.messages)["c2"]
    assert len(known.calls) == 1
    assert [word for word in r.trace() if word[0] == "X"] == ["X+c1", "X+c2", "X-c2!", "X-c1"]
    check_results(session.manager.messages)


async def test_the_tools_of_the_request_count_not_those_of_now(rig: MakeRig) -> None:
    """A tool that disappears while the model thinks was still offered; one that appears was not."""
    old, new = FunctionTool("old"), FunctionTool("new")
    r = rig(answers("thinking", call("c1", "old"), call("c2", "new")), answers("ok"), tools=[old])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: bool(r.provider.requests))
    session.extensions.tools.add("another", new)
    session.extensions.tools.off = frozenset({"old"})
    await run

    assert (len(old.calls), len(new.calls)) == (1, 0)
    assert r.provider.requests[1].tools == ("new",)


async def test_wrong_arguments_are_told_to_the_model(rig: MakeRig) -> None:
    """The tool never sees them."""
    tool = FunctionTool("look", required=["text"])
    r = rig(answers(call("c1", "look")), answers("ok"), tools=[tool])
    session = await r.open()
    await session.prompt(say("u"))

    assert "text" in results(r, session.manager.messages)["c1"]
    assert tool.calls == []


async def test_arguments_that_are_no_json_are_never_run(rig: MakeRig) -> None:
    """A guess at what was meant could do harm."""
    tool = FunctionTool("look")
    r = rig(answers(call("c1", "look", invalid='{"text": "rm')), answers("ok"), tools=[tool])
    session = await r.open()
    await session.prompt(say("u"))

    assert "JSON" in results(r, session.manager.messages)["c1"]
    assert tool.calls == []


async def test_no_call_of_an_answer_that_was_cut_by_its_length_runs(rig: MakeRig) -> None:
    """Its arguments may be half of what was meant; the model may send them again."""
    tool = FunctionTool("look")
    r = rig(answers(call("c1", "look"), call("c2", "look"), stop_reason="length"), answers("ok"), tools=[tool])
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert tool.calls == []
    assert all("limit" in text for text in results(r, session.manager.messages).values())
    assert [word for word in r.trace() if word[0] == "X"] == ["X+c1", "X-c1!", "X+c2", "X-c2!"]
    assert outcome is not None
    assert outcome.outcome == "success"


async def test_calls_are_known_by_their_blocks_not_by_the_stop_reason(rig: MakeRig) -> None:
    """Some services end an answer with calls as if it were complete."""
    tool = FunctionTool("look")
    r = rig(answers(call("c1", "look"), stop_reason="stop"), answers("ok"), tools=[tool])
    await (await r.open()).prompt(say("u"))

    assert len(tool.calls) == 1


async def test_a_tool_that_raises_gives_an_error_result(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    """What the model did wrong reads as it was said; a defect carries an id that the log has too."""

    async def wrong(invocation: ToolInvocation) -> ToolResult:
        raise ModelMustAct("there is no such file")

    async def broken(invocation: ToolInvocation) -> ToolResult:
        raise ZeroDivisionError("by zero")

    tools = [FunctionTool("wrong", wrong), FunctionTool("broken", broken)]
    r = rig(answers(call("c1", "wrong"), call("c2", "broken")), answers("ok"), tools=tools)
    session = await r.open()
    await session.prompt(say("u"))

    found = results(r, session.manager.messages)
    assert found["c1"] == "there is no such file"
    assert found["c2"].startswith("ZeroDivisionError: by zero (error ")
    error_id = found["c2"].rsplit("error ", 1)[1].rstrip(")")
    assert any(getattr(record, "facts", {}).get("error_id") == error_id for record in caplog.records)


async def test_progress_is_shown_until_the_call_has_ended(rig: MakeRig) -> None:
    """A tool that goes on talking afterwards is not heard."""
    reports: list[Callable[[str], None]] = []

    async def talk(invocation: ToolInvocation) -> ToolResult:
        reports.append(invocation.report)
        invocation.report("half way")
        return text_result("ok")

    r = rig(answers(call("c1", "talk")), answers("ok"), tools=[FunctionTool("talk", talk)])
    await (await r.open()).prompt(say("u"))
    reports[0]("too late")

    assert [event.partial_result for event in r.events if isinstance(event, ToolExecutionUpdate)] == ["half way"]


async def test_a_tool_knows_where_it_works(rig: MakeRig) -> None:
    """The session's id and who asked are filled in for it."""
    tool = FunctionTool("look")
    r = rig(answers(call("c1", "look")), answers("ok"), tools=[tool])
    session = await r.open()
    await session.prompt(say("u", owner=True))

    context = tool.calls[0].context
    assert (context.session_id, context.owner, context.workspace) == (session.id, True, r.workspace)


async def test_details_of_any_kind_can_be_stored(rig: MakeRig) -> None:
    """A tool's facts for programs may hold paths, sets or its own types; they must not break the run."""

    async def odd(invocation: ToolInvocation) -> ToolResult:
        return ToolResult(content=[], details={"where": r.workspace, "n": {1}, "\ud800": "\ud800"})

    r = rig(answers(call("c1", "odd")), answers("ok"), tools=[FunctionTool("odd", odd)])
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.outcome == "success"
    [end] = [event for event in r.events if isinstance(event, ToolExecutionEnd)]
    assert end.details == {"where": str(r.workspace), "n": [1], "?": "?"}


async def test_every_start_shows_the_models_arguments(rig: MakeRig) -> None:
    """A host tells what is being done."""
    r = rig(answers(call("c1", "look", text="x")), answers("ok"), tools=[FunctionTool("look")])
    await (await r.open()).prompt(say("u"))

    assert [(e.tool_name, e.args) for e in r.events if isinstance(e, ToolExecutionStart)] == [("look", {"text": "x"})]
