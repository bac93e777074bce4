"""Models that stand in for one that does not answer."""

import asyncio
from collections.abc import Callable

import pytest

from features.agent import RetryOptions
from features.agent.testing import SCRIPTED_MODEL, FunctionTool, answers, call, fails
from features.contracts.agent import RunOutcome
from features.contracts.events import ModelFallback, RetryEnd, RetryStart
from features.contracts.models import Model
from tests.features.agent.rig import Rig, check_grammar, roles, say, shown

MakeRig = Callable[..., Rig]
SECOND = Model(provider="scripted", id="second", api="scripted")
THIRD = Model(provider="scripted", id="third", api="scripted")
OWN = SCRIPTED_MODEL.reference
FALLBACKS = (SECOND.reference, THIRD.reference)


async def settled(r: Rig, run: "asyncio.Task[RunOutcome | None]") -> RunOutcome:
    while not run.done():
        await asyncio.sleep(0)
        if r.clock.sleepers:
            await r.clock.advance(10)
    outcome = await run
    assert outcome is not None
    return outcome


def fallbacks(r: Rig) -> list[tuple[str, str, str]]:
    return [(event.from_model, event.to_model, event.reason) for event in r.events if isinstance(event, ModelFallback)]


async def test_after_the_retries_another_model_answers(rig: MakeRig) -> None:
    """The person gets an answer, and no half text of the attempts before."""
    r = rig(*[fails("overloaded", "Hel")] * 3, answers("Hello."), models=[SECOND, THIRD])
    session = await r.open(retry=RetryOptions(max_attempts=2), fallbacks=FALLBACKS)
    outcome = await settled(r, asyncio.create_task(session.prompt(say("u"))))

    assert (outcome.outcome, outcome.text) == ("success", "Hello.")
    assert fallbacks(r) == [(OWN, SECOND.reference, "overloaded")]
    assert [request.model.id for request in r.provider.requests] == ["one"] * 3 + ["second"]
    assert [type(event).__name__ for event in r.events if isinstance(event, RetryStart | RetryEnd | ModelFallback)] == [
        "RetryStart", "RetryStart", "RetryEnd", "ModelFallback",
    ]  # fmt: skip
    assert shown(r.events) == "Hello."
    assert session.model.reference == OWN
    assert session.manager.model == (SCRIPTED_MODEL.provider, SCRIPTED_MODEL.id)
    check_grammar(r.events)


@pytest.mark.parametrize("kind", ["auth", "billing"])
async def test_a_key_that_is_not_accepted_falls_back_at_once(rig: MakeRig, kind: str) -> None:
    """There is nothing to wait for."""
    r = rig(fails(kind), answers("ok"), models=[SECOND, THIRD])  # type: ignore[arg-type]
    outcome = await (await r.open(fallbacks=FALLBACKS)).prompt(say("u"))

    assert outcome is not None
    assert outcome.text == "ok"


@pytest.mark.parametrize("kind", ["refused", "invalid", "unknown"])
async def test_what_is_wrong_with_the_request_is_wrong_everywhere(rig: MakeRig, kind: str) -> None:
    r = rig(fails(kind), models=[SECOND, THIRD])  # type: ignore[arg-type]
    outcome = await (await r.open(fallbacks=FALLBACKS)).prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.kind == kind
    assert not fallbacks(r)


async def test_when_all_fail_the_run_says_why(rig: MakeRig) -> None:
    """Each is asked once round, never for ever."""
    r = rig(fails("auth"), fails("billing"), fails("auth", error="the last word"), models=[SECOND, THIRD])
    outcome = await (await r.open(fallbacks=FALLBACKS)).prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.message == "the last word"
    assert [to for _, to, _ in fallbacks(r)] == list(FALLBACKS)


async def test_a_model_that_failed_rests_and_comes_back(rig: MakeRig) -> None:
    """Over all sessions: the next message does not wait through the same retries, and later the own model answers again."""
    r = rig(fails("auth"), answers("b"), answers("b"), answers("a"), models=[SECOND, THIRD])
    session = await r.open(fallbacks=FALLBACKS)
    await session.prompt(say("u"))
    await session.prompt(say("v"))
    await r.clock.advance(121)
    await session.prompt(say("w"))

    assert [request.model.id for request in r.provider.requests] == ["one", "second", "second", "one"]
    assert [reason for _, _, reason in fallbacks(r)] == ["auth", "unavailable"]


async def test_a_run_of_many_turns_tells_it_once(rig: MakeRig) -> None:
    r = rig(fails("auth"), answers(call("c", "look")), answers("b"), models=[SECOND, THIRD], tools=[FunctionTool("look")])
    outcome = await (await r.open(fallbacks=FALLBACKS)).prompt(say("u"))

    assert outcome is not None
    assert outcome.text == "b"
    assert len(fallbacks(r)) == 1


async def test_a_fallback_that_is_gone_is_passed_over(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    """A list in a file outlives the models in it."""
    r = rig(fails("auth"), answers("c"), models=[THIRD])
    outcome = await (await r.open(fallbacks=("scripted/gone", THIRD.reference))).prompt(say("u"))

    assert outcome is not None
    assert outcome.text == "c"
    assert any(record.message == "fallback model left out" for record in caplog.records)


async def test_without_fallbacks_a_failure_is_a_failure(rig: MakeRig) -> None:
    r = rig(fails("auth"), fails("auth"))
    session = await r.open()
    await session.prompt(say("u"))
    outcome = await session.prompt(say("v"))

    assert outcome is not None
    assert outcome.outcome == "error"
    assert roles(session.manager.messages) == ["user", "assistant(error)"] * 2
