"""Going on after a crash: what the disk holds is all there is."""

import asyncio
from collections.abc import Callable

import pytest

from features.agent.testing import FunctionTool, answers, call, fails
from features.contracts.errors import SessionBusyError
from features.contracts.messages import AssistantMessage, Message, TextBlock, ToolResultMessage, Usage, UserMessage
from features.contracts.testing import FakeClock, sequential_ids
from features.sessions import SessionManager
from features.sessions.testing import append_message
from tests.features.agent.rig import SCOPE, Rig, check_grammar, check_results, roles, say, texts

MakeRig = Callable[..., Rig]


def user(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def assistant(*blocks: object, stop_reason: str = "toolUse") -> AssistantMessage:
    return AssistantMessage(
        content=list(blocks), api="scripted", provider="scripted", model="one", usage=Usage(), stop_reason=stop_reason, timestamp=2,  # type: ignore[arg-type]
    )  # fmt: skip


def result(id: str) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=id, tool_name="look", content=[TextBlock(text="ok")], is_error=False, timestamp=3)


async def left_behind(r: Rig, *messages: Message) -> None:
    """A session as a crash leaves it."""
    manager = await SessionManager.create(r.store, SCOPE, clock=FakeClock(), ids=sequential_ids("old"), cwd="/")
    for message in messages:
        assert isinstance(message, UserMessage | AssistantMessage | ToolResultMessage)
        await append_message(manager, message)


async def test_a_prompt_without_an_answer_is_answered_without_being_put_in_twice(rig: MakeRig) -> None:
    """The host died while the model was thinking."""
    r = rig(answers("Here I am."))
    await left_behind(r, user("hi"))
    session = await r.open()
    outcome = await session.resume(("m1",))

    assert outcome is not None
    assert (outcome.text, outcome.source_ids) == ("Here I am.", ("m1",))
    assert roles(session.manager.messages) == ["user", "assistant(stop)"]
    check_grammar(r.events)


async def test_calls_without_a_result_are_closed_before_the_model_is_asked(rig: MakeRig) -> None:
    """A service refuses a conversation with an open call, for ever."""
    r = rig(answers("I see."), tools=[FunctionTool("look")])
    await left_behind(r, user("hi"), assistant(call("c1", "look"), call("c2", "look"), call("c3", "look")), result("c1"))
    session = await r.open()
    outcome = await session.resume()

    assert outcome is not None
    check_results(r.provider.requests[0].messages)
    assert [m.is_error for m in session.manager.messages if isinstance(m, ToolResultMessage)] == [False, True, True]
    check_grammar(r.events)


async def test_a_prompt_closes_open_calls_too(rig: MakeRig) -> None:
    """A host that does not resume must not brick the session."""
    r = rig(answers("I see."))
    await left_behind(r, user("hi"), assistant(call("c1", "look")))
    session = await r.open()
    await session.prompt(say("and now?"))

    assert roles(session.manager.messages) == ["user", "assistant(toolUse)", "toolResult", "user", "assistant(stop)"]


async def test_results_without_the_next_answer_go_on(rig: MakeRig) -> None:
    """The host died between the tools and the model."""
    r = rig(answers("I see."))
    await left_behind(r, user("hi"), assistant(call("c1", "look")), result("c1"))
    outcome = await (await r.open()).resume()

    assert outcome is not None
    assert outcome.text == "I see."


async def test_there_is_nothing_to_resume_after_an_answer(rig: MakeRig) -> None:
    """An answered prompt is not answered again, nor is an empty session."""
    r = rig()
    assert await (await r.open()).resume() is None
    await left_behind(r, user("hi"), assistant(TextBlock(text="hello"), stop_reason="stop"))

    assert await (await r.open()).resume(("m1",)) is None


async def test_a_stopped_run_is_not_taken_up_again(rig: MakeRig) -> None:
    """Somebody wanted it to end."""
    r = rig()
    await left_behind(r, user("hi"), assistant(stop_reason="aborted"))

    assert await (await r.open()).resume(("m1",)) is None


async def test_a_failed_attempt_goes_on_when_the_host_knows_who_waits(rig: MakeRig) -> None:
    """The host died while it waited for a retry. Without anybody waiting, an old failure stays what it is."""
    r = rig(answers("Now it works."))
    await left_behind(r, user("hi"), assistant(stop_reason="error"))
    session = await r.open()
    assert await session.resume() is None
    outcome = await session.resume(("m1",))

    assert outcome is not None
    assert outcome.text == "Now it works."


async def test_a_resumed_owner_is_still_an_owner(rig: MakeRig) -> None:
    """And nobody is by default."""
    tool = FunctionTool("look")
    r = rig(answers(call("c1", "look")), answers("ok"), answers(call("c2", "look")), answers("ok"), tools=[tool])
    await left_behind(r, user("hi"))
    session = await r.open()
    await session.resume(owner=True)
    await append_message(session.manager, user("hi"))
    await session.resume()

    assert [invocation.context.owner for invocation in tool.calls] == [True, False]


async def test_a_running_session_is_not_resumed(rig: MakeRig) -> None:
    """One run at a time, whatever it starts with."""
    r = rig(answers("ok"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    with pytest.raises(SessionBusyError):
        await session.resume()
    await run

    assert texts(session.manager.messages[-1]) == "ok"


async def test_a_failed_run_can_be_prompted_again(rig: MakeRig) -> None:
    """The transcript keeps the failure, the conversation goes on."""
    r = rig(fails("auth"), answers("ok"))
    session = await r.open()
    await session.prompt(say("u"))
    outcome = await session.prompt(say("again"))

    assert outcome is not None
    assert outcome.outcome == "success"
