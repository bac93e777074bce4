"""Model calls that fail, and runs that cannot go on."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from features.agent.model_call import CallFailure
from features.agent.options import RetryOptions
from features.agent.retries import Retries
from features.agent.testing import FunctionTool, answers, breaks_off, call, fails, raises
from features.contracts.events import MessageEnd, RetryEnd, RetryStart
from features.contracts.messages import AssistantMessage, CustomMessage, Usage
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.features.agent.rig import Rig, check_grammar, check_results, roles, say, shown, until

MakeRig = Callable[..., Rig]


async def settle(r: Rig, run: "asyncio.Task[object]") -> None:
    """Let every wait for a retry pass at once."""
    while not run.done():
        await asyncio.sleep(0)
        if r.clock.sleepers:
            await r.clock.advance(120)


async def test_a_passing_failure_is_repeated_until_it_works(rig: MakeRig) -> None:
    """The person notices nothing but the wait."""
    r = rig(fails("overloaded", error="529"), fails("network"), answers("Hello."))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await settle(r, run)
    outcome = await run

    assert outcome is not None
    assert (outcome.outcome, outcome.text, outcome.failure) == ("success", "Hello.", None)
    assert [(e.attempt, e.max_attempts, e.error_message) for e in r.events if isinstance(e, RetryStart)] == [
        (1, 3, "529"), (2, 3, "it failed"),
    ]  # fmt: skip
    assert [e for e in r.events if isinstance(e, RetryEnd)] == [RetryEnd(success=True, attempt=2)]
    assert roles(session.manager.messages) == ["user", "assistant(error)", "assistant(error)", "assistant(stop)"]
    check_grammar(r.events)


async def test_repeating_has_an_end(rig: MakeRig) -> None:
    """The outcome then says what the service said."""
    r = rig(*[fails("rate_limit", error="slow down")] * 3)
    session = await r.open(retry=RetryOptions(max_attempts=2))
    run = asyncio.create_task(session.prompt(say("u")))
    await settle(r, run)
    outcome = await run

    assert outcome is not None
    assert outcome.failure is not None
    assert (outcome.outcome, outcome.failure.kind, outcome.failure.message) == ("error", "rate_limit", "slow down")
    assert [e.attempt for e in r.events if isinstance(e, RetryStart)] == [1, 2]
    assert [e for e in r.events if isinstance(e, RetryEnd)] == [RetryEnd(success=False, attempt=2, final_error="slow down")]


@pytest.mark.parametrize("kind", ["auth", "billing", "overflow", "refused", "invalid", "unknown"])
async def test_what_will_not_pass_is_not_repeated(rig: MakeRig, kind: str) -> None:
    """A wrong key stays wrong; hammering does harm."""
    r = rig(fails(kind))  # type: ignore[arg-type]
    outcome = await (await r.open()).prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.kind == kind
    assert not [e for e in r.events if isinstance(e, RetryStart)]


async def test_a_wait_that_is_too_long_fails_at_once_and_says_so(rig: MakeRig) -> None:
    """Nobody waits an hour in a chat without knowing."""
    r = rig(fails("rate_limit", error="limit reached", retry_after_s=3600))
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.message == "limit reached (the service asks to wait 3600 s, this host waits 60 s at most)"
    last = session.manager.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.error_message == outcome.failure.message


async def test_a_retry_shows_no_text_twice(rig: MakeRig) -> None:
    """A viewer drops the message that ended with an error."""
    r = rig(fails("server", "Hello wo"), answers("Hello world."))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await settle(r, run)
    outcome = await run

    assert shown(r.events) == "Hello world."
    assert outcome is not None
    assert outcome.text == "Hello world."


async def test_a_failed_run_gives_what_had_arrived(rig: MakeRig) -> None:
    """Half an answer is better than none, and it is marked as failed."""
    r = rig(fails("auth", "Hello wo"))
    outcome = await (await r.open()).prompt(say("u"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("error", "Hello wo")


async def test_calls_of_a_failed_answer_never_run(rig: MakeRig) -> None:
    """Half an answer is no order."""
    tool = FunctionTool("look")
    r = rig(fails("auth", call("c1", "look")), tools=[tool])
    session = await r.open()
    await session.prompt(say("u"))

    assert tool.calls == []
    check_results(session.manager.messages)


async def test_a_stream_without_a_last_word_is_a_network_failure(rig: MakeRig) -> None:
    """Silence is not an answer; the open block is closed for those who watch."""
    r = rig(breaks_off("Hel"), answers("Hello."))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await settle(r, run)

    assert roles(session.manager.messages) == ["user", "assistant(error)", "assistant(stop)"]
    check_grammar(r.events)


async def test_a_provider_that_raises_ends_the_run_with_an_error_id(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    """It breaks its contract; the run does not break with it."""
    r = rig(raises(ZeroDivisionError("secret detail")))
    outcome = await (await r.open()).prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.kind == "unknown"
    assert "secret detail" not in outcome.failure.message
    assert any(record.message == "provider raised" for record in caplog.records)
    check_grammar(r.events)


async def test_a_run_ends_when_it_takes_too_many_turns(rig: MakeRig) -> None:
    """A model that calls tools for ever costs money for ever."""
    r = rig(*[answers(call(f"c{n}", "look")) for n in range(3)], tools=[FunctionTool("look")])
    session = await r.open(max_turns=3)
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.failure is not None
    assert (outcome.outcome, outcome.failure.kind) == ("error", "turn_limit")
    assert "3" in outcome.failure.message
    assert roles(session.manager.messages)[-2:] == ["toolResult", "assistant(error)"]
    check_grammar(r.events)


async def test_a_persons_word_gives_a_run_new_turns(rig: MakeRig) -> None:
    """The limit is for a model alone, not for a conversation."""
    r = rig(answers(call("c1", "look")), answers("a1"), answers(call("c2", "look")), answers("a2"), tools=[FunctionTool("look")])
    session = await r.open(max_turns=2)
    run = asyncio.create_task(session.prompt(say("u")))
    await asyncio.sleep(0)
    await session.prompt(say("F"), when_busy="follow_up")
    outcome = await run

    assert outcome is not None
    assert outcome.outcome == "success"


async def test_an_empty_answer_after_tools_is_asked_for_once(rig: MakeRig) -> None:
    """The person waits for a word after all that work."""
    r = rig(answers(call("c1", "look")), answers(), answers("All done."), tools=[FunctionTool("look")])
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.text == "All done."
    nudge = r.provider.requests[2].messages[-1]
    assert isinstance(nudge, CustomMessage)
    assert not nudge.display
    check_grammar(r.events)


async def test_steering_does_not_excuse_an_empty_answer(rig: MakeRig) -> None:
    """Somebody spoke while the tools ran; there is still work to tell of."""

    async def look(invocation: ToolInvocation) -> ToolResult:
        await session.prompt(say("hurry"), when_busy="steer")
        return text_result("ok")

    r = rig(answers(call("c1", "look")), answers(), answers("Done."), tools=[FunctionTool("look", look)])
    session = await r.open()
    outcome = await session.prompt(say("u"))

    assert outcome is not None
    assert outcome.text == "Done."


async def test_a_second_empty_answer_is_the_outcome(rig: MakeRig) -> None:
    """It is asked for once, not for ever; the host finds words of its own."""
    r = rig(answers(call("c1", "look")), answers(" "), answers(), tools=[FunctionTool("look")])
    outcome = await (await r.open()).prompt(say("u"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "")


async def test_an_empty_answer_without_tools_is_not_asked_for_again(rig: MakeRig) -> None:
    """There is nothing to sum up."""
    r = rig(answers())
    outcome = await (await r.open()).prompt(say("u"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "")


async def test_usage_counts_every_call_that_was_made(rig: MakeRig) -> None:
    """Failed attempts cost money too."""
    r = rig(
        answers(call("c1", "look"), usage=Usage(input=1, output=2, total_tokens=3)),
        answers("ok", usage=Usage(input=10, output=20, cache_read=5, total_tokens=35)),
        tools=[FunctionTool("look")],
    )
    outcome = await (await r.open()).prompt(say("u"))

    assert outcome is not None
    assert outcome.usage == Usage(input=11, output=22, cache_read=5, total_tokens=38)


async def test_a_listener_that_raises_disturbs_nobody(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    """A broken view must not break the work."""
    r = rig(answers("ok"))
    session = await r.open()

    def broken(event: object) -> None:
        raise ValueError("no")

    session.subscribe(broken)
    heard: list[object] = []
    stop_listening = session.subscribe(heard.append)
    outcome = await session.prompt(say("u"))
    stop_listening()

    assert outcome is not None
    assert outcome.outcome == "success"
    assert heard == r.events
    assert any(record.message == "session listener failed" for record in caplog.records)


async def test_someone_who_steers_during_the_wait_is_heard_by_the_retry(rig: MakeRig) -> None:
    """A retry is a model call like any other."""
    r = rig(fails("server"), answers("ok"))
    session = await r.open()
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: bool(r.clock.sleepers))
    await session.prompt(say("also this"), when_busy="steer")
    await settle(r, run)

    assert roles(session.manager.messages) == ["user", "assistant(error)", "user", "assistant(stop)"]


def failure(kind: str = "server", retry_after_s: float | None = None) -> CallFailure:
    return CallFailure(kind, retry_after_s)  # type: ignore[arg-type]


def test_waits_double_and_are_bounded() -> None:
    """2, 4, 8 s and so on, a little less by chance, never above the limit."""
    retries = Retries(RetryOptions(max_attempts=50), Random(5))
    waits = [retries.delay(failure(), attempt) for attempt in range(1, 51)]

    for attempt, wait in enumerate(waits):
        assert wait is not None
        full = min(2.0 * 2**attempt, 60.0)
        assert 0.75 * full <= wait <= full


def test_the_service_is_given_the_time_it_asks_for() -> None:
    """Never sooner than it said; a little later, because everybody was told the same."""
    retries = Retries(RetryOptions(), Random(5))
    wait = retries.delay(failure("rate_limit", 30.0), 1)

    assert wait is not None
    assert 30.0 <= wait <= 33.0


def test_no_repetitions_means_none() -> None:
    """0 turns retries off."""
    assert Retries(RetryOptions(max_attempts=0), Random(5)).delay(failure(), 1) is None


async def test_the_last_message_of_a_failed_attempt_tells_viewers_to_drop_it(rig: MakeRig) -> None:
    """The rule that viewers follow: stop reason ``error``."""
    r = rig(fails("auth", "half"))
    await (await r.open()).prompt(say("u"))

    [end] = [e.message for e in r.events if isinstance(e, MessageEnd) and isinstance(e.message, AssistantMessage)]
    assert end.stop_reason == "error"
