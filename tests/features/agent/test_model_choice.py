"""Which model a session talks to, and how hard it thinks."""

import asyncio
from collections.abc import Callable

import pytest

from features.agent.testing import SCRIPTED_MODEL, FunctionTool, answers, call
from features.contracts.errors import UserMustAct
from features.contracts.messages import Usage
from features.contracts.models import Model
from features.contracts.sessions import SessionEntry, SessionHeader
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.sessions.testing import append_message
from tests.features.agent.rig import CountingStore, Rig, say, until

MakeRig = Callable[..., Rig]
TWO = Model(provider="scripted", id="two", api="scripted")


class ForgetfulStore(CountingStore):
    """Still points to a session that it has not any more."""

    forgotten = ""

    async def load(self, session_id: str) -> tuple[SessionHeader, list[SessionEntry], str | None]:
        if session_id == self.forgotten:
            raise KeyError(session_id)
        return await self.inner.load(session_id)


async def test_model_and_thinking_come_back_with_the_session(rig: MakeRig) -> None:
    """Not what the configuration says by now."""
    r = rig(answers("ok"), answers("ok"), models=[TWO])
    first = await r.open()
    await first.set_model("scripted/two")
    await first.set_thinking("high")
    await first.prompt(say("u"))
    second = await r.open(thinking="low")
    await second.prompt(say("v"))

    assert second.id == first.id
    assert (second.model, second.thinking) == (TWO, "high")
    assert r.provider.requests[1].model == TWO


async def test_a_model_that_is_gone_is_replaced_and_said_so(rig: MakeRig) -> None:
    """A session outlives the configuration it was made with."""
    r = rig(answers("ok"), models=[TWO])
    first = await r.open()
    await first.set_model("scripted/two")
    del r.models._models["scripted/two"]
    second = await r.open()
    await second.prompt(say("u"))

    assert second.model == SCRIPTED_MODEL
    [notice] = second.notices
    assert "scripted/two" in notice
    assert "scripted/one" in notice


async def test_where_the_chats_model_is_gone_too_the_hosts_serves(rig: MakeRig) -> None:
    """Otherwise nobody could say anything there any more."""
    r = rig(answers("ok"))
    session = await r.open(model="scripted/gone", spare_model=SCRIPTED_MODEL.reference)
    await session.prompt(say("u"))

    assert session.model == SCRIPTED_MODEL
    assert session.notices == ("The model scripted/gone is not available any more; this session goes on with scripted/one.",)


async def test_without_any_model_the_first_that_is_missing_is_named(rig: MakeRig) -> None:
    """The text goes to the person."""
    with pytest.raises(UserMustAct, match="scripted/gone"):
        await rig().open(model="scripted/gone", spare_model="scripted/gone-too")


async def test_a_change_in_a_run_counts_from_the_next_model_call(rig: MakeRig) -> None:
    """The call that is going on is not disturbed."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow(invocation: ToolInvocation) -> ToolResult:
        entered.set()
        await go.wait()
        return text_result("ok")

    r = rig(answers(call("c1", "slow")), answers("ok"), tools=[FunctionTool("slow", slow)], models=[TWO])
    session = await r.open(thinking="high")
    run = asyncio.create_task(session.prompt(say("u")))
    await entered.wait()
    await session.set_model("scripted/two")
    go.set()
    await run

    assert [(request.model.id, request.thinking) for request in r.provider.requests] == [("one", "high"), ("two", "off")]


async def test_a_model_chosen_during_the_last_answer_is_the_one_after_a_restart(rig: MakeRig) -> None:
    """The answer of the old model comes after the choice and must not undo it."""
    r = rig(answers("a long answer"), models=[TWO])
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.provider.open_streams == 1)
    await session.set_model("scripted/two")
    await run

    assert (await r.open()).model == TWO


async def test_an_unknown_model_is_refused_and_changes_nothing(rig: MakeRig) -> None:
    """The person hears what is wrong."""
    r = rig()
    session = await r.open()
    with pytest.raises(UserMustAct):
        await session.set_model("scripted/nine")

    assert session.model == SCRIPTED_MODEL
    with pytest.raises(UserMustAct):
        await r.open(new=True, model="scripted/nine")


async def test_the_current_session_of_a_chat_is_opened_and_a_new_one_on_demand(rig: MakeRig) -> None:
    """``/new`` makes another one current."""
    r = rig()
    first = await r.open(name="first")
    again = await r.open()
    other = await r.open(new=True, name="other")

    assert (first.id == again.id, first.name, other.name) == (True, "first", "other")
    assert (await r.open()).id == other.id
    assert (await r.open(session_id=first.id)).id == first.id
    with pytest.raises(KeyError):
        await r.open(session_id="nowhere")


async def test_a_current_session_that_vanished_is_replaced_and_said_so(rig: MakeRig) -> None:
    """A stale pointer must not make every message fail."""
    store = ForgetfulStore()
    r = rig(store=store)
    first = await r.open()
    store.forgotten = first.id
    second = await r.open()

    assert second.id != first.id
    assert second.notices


async def test_a_session_can_be_renamed(rig: MakeRig) -> None:
    """``/name``."""
    session = await rig().open()
    await session.set_name("Holiday plans")

    assert session.name == "Holiday plans"


async def test_the_context_size_is_the_services_figure_plus_an_estimate(rig: MakeRig) -> None:
    """Before any answer there is only the estimate."""
    r = rig(answers("x" * 40, usage=Usage(input=900, output=100, total_tokens=1000)))
    session = await r.open()
    assert session.context_tokens() == 0
    await session.prompt(say("u" * 400))
    assert session.context_tokens() == 1000
    await append_message(session.manager, session.manager.messages[0])  # type: ignore[arg-type]

    assert session.context_tokens() == 1100


async def test_the_request_carries_what_a_provider_needs(rig: MakeRig) -> None:
    """Prompt, tools, zone and the session's id."""
    r = rig(answers("ok"), tools=[FunctionTool("look")])
    session = await r.open()
    await session.prompt(say("u"))

    request = r.provider.requests[0]
    assert (request.tools, request.time_zone, request.session_id) == (("look",), "UTC", session.id)
    assert "2026-01-05" in request.system_prompt
    assert "- look: Does look" in request.system_prompt
