"""No secret is shown or stored, wherever it comes from."""

from collections.abc import Callable

import msgspec

from features.agent.testing import FunctionTool, answers, call, fails
from features.contracts.errors import ModelMustAct
from features.contracts.events import MessageUpdate, SessionEvent
from features.contracts.messages import AssistantMessage, TextBlock, ThinkingBlock
from features.contracts.stream import TextDelta, TextEnded, ToolCallEnded
from features.contracts.tools import ToolInvocation, ToolResult
from tests.features.agent.rig import SECRET, Rig, check_grammar, say, shown, texts

MakeRig = Callable[..., Rig]


def as_text(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


async def stored(r: Rig, session_id: str) -> str:
    return as_text((await r.store.load(session_id))[1])


def updates(events: list[SessionEvent]) -> list[object]:
    return [event.assistant_message_event for event in events if isinstance(event, MessageUpdate)]


async def test_a_secret_in_pieces_is_never_shown(rig: MakeRig) -> None:
    """The model says it four characters at a time; no piece of it leaves the house."""
    r = rig(answers(f"The key is {SECRET}, keep it."))
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.text == "The key is [REDACTED], keep it."
    assert shown(r.events) == outcome.text
    assert SECRET[:8] not in as_text(r.events)
    assert SECRET not in await stored(r, session.id)


async def test_what_is_held_back_comes_before_the_blocks_end(rig: MakeRig) -> None:
    """A text that only looks like the beginning of a secret is shown in full."""
    r = rig(answers("It starts with sk-live"))
    await (await r.open()).prompt(say("u"))

    seen = updates(r.events)
    assert isinstance(seen[-1], TextEnded)
    assert "".join(event.delta for event in seen if isinstance(event, TextDelta)) == "It starts with sk-live"


async def test_blocks_are_redacted_apart(rig: MakeRig) -> None:
    """The end of one and the beginning of the next are no secret together."""
    r = rig(answers(SECRET[:12], SECRET[12:]))
    session = await r.open()
    await session.prompt(say("u"))

    assert shown(r.events) == SECRET
    assert texts(session.manager.messages[-1]) == SECRET


async def test_signed_thinking_with_a_secret_is_dropped_whole(rig: MakeRig) -> None:
    """Changed, its signature would be refused; unsigned thinking is only redacted."""
    signed, unsigned = ThinkingBlock(thinking=f"hm {SECRET}", thinking_signature="sig"), ThinkingBlock(thinking=f"hm {SECRET}")
    clean = ThinkingBlock(thinking="fine", thinking_signature="sig")
    r = rig(answers(signed, unsigned, clean, "ok"))
    session = await r.open()
    await session.prompt(say("u"))

    last = session.manager.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.content == [ThinkingBlock(thinking="hm [REDACTED]"), clean, TextBlock(text="ok")]
    assert SECRET not in as_text(r.events)


async def test_a_tool_gets_what_the_model_wrote_and_nobody_else_does(rig: MakeRig) -> None:
    """The call must work; what is shown and kept of it is redacted."""
    tool = FunctionTool("look")
    r = rig(answers(call("c1", "look", text=f"key={SECRET}")), answers("ok"), tools=[tool])
    session = await r.open()
    await session.prompt(say("u"))

    assert tool.calls[0].arguments == {"text": f"key={SECRET}"}
    assert SECRET not in as_text(r.events)
    assert SECRET not in await stored(r, session.id)
    [ended] = [event for event in updates(r.events) if isinstance(event, ToolCallEnded)]
    assert ended.tool_call.arguments == {"text": "key=[REDACTED]"}


async def test_results_updates_details_and_errors_of_tools_are_redacted(rig: MakeRig) -> None:
    """Before anybody sees them, and before the model does."""

    async def leak(invocation: ToolInvocation) -> ToolResult:
        invocation.report(f"seen {SECRET}")
        return ToolResult(content=[TextBlock(text=f"it is {SECRET}")], details={"env": [SECRET], SECRET: 1})

    async def fail(invocation: ToolInvocation) -> ToolResult:
        raise ModelMustAct(f"cannot open {SECRET}")

    r = rig(answers(call("c1", "leak"), call("c2", "fail")), answers("ok"), tools=[FunctionTool("leak", leak), FunctionTool("fail", fail)])
    session = await r.open()
    await session.prompt(say("u"))

    assert SECRET not in as_text(r.events)
    assert SECRET not in await stored(r, session.id)
    assert SECRET not in as_text(r.provider.requests[1].messages)


async def test_an_error_of_the_service_is_redacted(rig: MakeRig) -> None:
    """Services like to quote the key that they refuse."""
    r = rig(fails("auth", error=f"bad key {SECRET}"))
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.message == "bad key [REDACTED]"
    assert SECRET not in await stored(r, session.id)


async def test_a_prompt_with_a_secret_is_redacted(rig: MakeRig) -> None:
    """A person pastes a key into the chat; it goes to no service and onto no disk."""
    r = rig(answers("ok"))
    session = await r.open()
    await session.prompt(say(f"use {SECRET}"))

    assert SECRET not in as_text(r.provider.requests[0].messages)
    assert SECRET not in await stored(r, session.id)


async def test_deeply_nested_arguments_do_not_break_the_run(rig: MakeRig) -> None:
    """A confused model can nest without end."""
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    r = rig(answers(call("c1", "look", invalid="[[[["), stop_reason="toolUse"), answers("ok"), tools=[FunctionTool("look")])
    assert r.redactor.redact("x") == "x"
    session = await r.open()
    assert session._state.services.redaction.data(deep) is None
    await session.prompt(say("u"))

    check_grammar(r.events)


async def test_lone_surrogates_are_replaced_before_they_reach_a_store_or_a_service(rig: MakeRig) -> None:
    """A file name of another encoding is enough to make one."""

    async def odd(invocation: ToolInvocation) -> ToolResult:
        return ToolResult(content=[TextBlock(text="caf\udce9")])

    r = rig(answers(call("c1", "odd")), answers("ok"), tools=[FunctionTool("odd", odd)])
    session = await r.open()
    await session.prompt(say("hi \ud800"))

    assert [texts(message) for message in session.manager.messages] == ["hi ?", "", "caf?", "ok"]
