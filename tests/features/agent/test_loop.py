"""What a run does, in which order."""

from collections.abc import Callable

from features.agent.testing import FunctionTool, answers, call
from tests.features.agent.rig import Rig, check_grammar, check_results, roles, say, shown

MakeRig = Callable[..., Rig]


async def test_a_plain_turn_tells_its_steps_in_pis_order(rig: MakeRig) -> None:
    """Hosts and scripts that know pi's events know ours."""
    r = rig(answers("Hello there."))
    session = await r.open()
    outcome = await session.prompt(say("hi", "m1"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text, outcome.source_ids) == ("success", "Hello there.", ("m1",))
    assert r.trace() == [
        "AgentStart", "TurnStart", "M+user", "M-user", "M+assistant", "M-assistant(stop)", "TurnEnd", "AgentEnd", "settled(success)",
    ]  # fmt: skip
    assert shown(r.events) == "Hello there."


async def test_a_plain_turn_costs_two_commits(rig: MakeRig) -> None:
    """One for the prompt and one for the answer; model and thinking level of a new session ride along."""
    r = rig(answers("one"), answers("two"))
    session = await r.open(thinking="high")
    await session.prompt(say("a"))
    first = r.store.commits
    await session.prompt(say("b"))

    assert (first, r.store.commits - first) == (2, 2)
    assert session.manager.model == ("scripted", "one")
    assert session.manager.thinking == "high"
    kinds = [type(entry).__name__ for entry in session.manager.branch()]
    assert kinds == ["ModelChangeEntry", "ThinkingLevelChangeEntry", *["MessageEntry"] * 4]


async def test_tools_run_and_their_results_reach_the_model(rig: MakeRig) -> None:
    """The round that makes it an agent."""
    tool = FunctionTool("look")
    r = rig(answers("Let me look.", call("c1", "look", text="x")), answers("Done."), tools=[tool])
    session = await r.open()
    outcome = await session.prompt(say("hi"))

    assert outcome is not None
    assert outcome.text == "Done."
    assert tool.calls[0].arguments == {"text": "x"}
    assert roles(r.provider.requests[1].messages) == ["user", "assistant(toolUse)", "toolResult"]
    assert r.trace() == [
        "AgentStart", "TurnStart", "M+user", "M-user", "M+assistant", "M-assistant(toolUse)", "X+c1", "X-c1", "M+toolResult",
        "M-toolResult", "TurnEnd", "TurnStart", "M+assistant", "M-assistant(stop)", "TurnEnd", "AgentEnd", "settled(success)",
    ]  # fmt: skip
    check_grammar(r.events)
    check_results(session.manager.messages)
