"""Conversations that outgrow their model's window."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features.agent import AgentSession
from features.agent.testing import FunctionTool, Step, answers, call, fails, hangs
from features.compaction import CompactionOptions
from features.contracts.agent import Prompt
from features.contracts.errors import PumiceError, RetryLater, UserMustAct
from features.contracts.events import CompactionEnd, CompactionStart, SessionEvent
from features.contracts.messages import AssistantMessage, CompactionSummaryMessage, Usage
from features.contracts.models import Model, ModelRequest
from features.contracts.sessions import CompactionEntry
from tests.features.agent.rig import SECRET, Rig, check_grammar, check_results, roles, say, shown, texts, until

MakeRig = Callable[..., Rig]
SMALL = Model(provider="scripted", id="small", api="scripted", context_window=4_000, max_output=400)
OPTIONS = CompactionOptions(reserve_tokens=200, keep_recent_tokens=100)
MUCH = Usage(input=2_950, output=50, total_tokens=3_000)
LONG = "long " * 80
"""A hundred tokens."""
FULL = Usage(input=3_850, output=50, total_tokens=3_900)


def compactions(session: AgentSession) -> list[CompactionEntry]:
    return [entry for entry in session.manager.branch() if isinstance(entry, CompactionEntry)]


def ends(events: Sequence[SessionEvent]) -> list[CompactionEnd]:
    return [event for event in events if isinstance(event, CompactionEnd)]


async def talked(rig: MakeRig, *steps: Step, last: Usage | None = None, **options: Any) -> tuple[Rig, AgentSession]:
    """A session of three exchanges, of which the last filled the context as ``last`` says; events before are forgotten."""
    tools = options.pop("tools", ())
    r = rig(answers("a1 " + LONG), answers("a2 " + LONG), answers("a3", usage=last), *steps, models=[SMALL], tools=tools)
    session = await r.open(**{"model": SMALL.reference, "compaction": OPTIONS, **options})
    for text in ("q1 ", "q2 ", "q3 "):
        await session.prompt(say(text + LONG))
    r.events.clear()
    return r, session


async def test_a_context_that_comes_near_the_window_is_compacted_before_the_call(rig: MakeRig) -> None:
    """The model reads the notes and what was said last, and nobody notices more than a pause."""
    r, session = await talked(rig, answers("the notes"), answers("a4"), last=FULL)
    outcome = await session.prompt(say("q4"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "a4")
    request = r.provider.requests[-1]
    assert isinstance(request.messages[0], CompactionSummaryMessage)
    assert request.messages[0].summary == "the notes"
    assert "q1" not in "".join(map(texts, request.messages))
    assert texts(request.messages[-1]) == "q4"
    [end] = ends(r.events)
    [entry] = compactions(session)
    assert end.result is not None
    assert (end.reason, end.result.summary, end.result.first_kept_entry_id) == ("threshold", "the notes", entry.first_kept_entry_id)
    assert end.result.tokens_before > end.result.tokens_after
    assert [type(event).__name__ for event in r.events if isinstance(event, CompactionStart | CompactionEnd)] == [
        "CompactionStart", "CompactionEnd",
    ]  # fmt: skip
    assert shown(r.events) == "a4"
    check_grammar(r.events)


async def test_what_was_kept_is_summed_up_the_next_time(rig: MakeRig) -> None:
    """And the first notes with it."""
    r, session = await talked(
        rig, answers("notes 1"), answers("a4 " + LONG, usage=FULL), answers("notes 2"), answers("on q4"), answers("a5"), last=FULL
    )
    await session.prompt(say("q4"))
    await session.prompt(say("q5"))

    asked = texts(r.provider.requests[-3].messages[0])
    assert "<previous-summary>\nnotes 1\n" in asked
    assert "q3" in asked
    assert len(compactions(session)) == 2
    assert texts(r.provider.requests[-1].messages[-1]) == "q5"


async def test_a_context_with_room_is_left_alone(rig: MakeRig) -> None:
    r, session = await talked(rig, answers("a4"), last=Usage(input=3_600, total_tokens=3_600))
    await session.prompt(say("q4"))

    assert not ends(r.events)


async def test_it_can_be_switched_off(rig: MakeRig) -> None:
    """Then only /compact compacts; an overflow ends the run."""
    r, session = await talked(rig, fails("overflow"), last=FULL, compaction=CompactionOptions(enabled=False))
    outcome = await session.prompt(say("q4"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.kind == "overflow"
    assert not ends(r.events)


async def test_a_long_run_is_compacted_between_its_turns(rig: MakeRig) -> None:
    """A hundred tool calls in one answer would not fit otherwise; no call loses its result."""
    r, session = await talked(
        rig, answers(call("c1", "look"), usage=FULL), answers("the notes"), answers("a4"),
        tools=[FunctionTool("look")],
    )  # fmt: skip
    outcome = await session.prompt(say("q4 " + LONG))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "a4")
    assert [event.reason for event in ends(r.events)] == ["threshold"]
    check_results(r.provider.requests[-1].messages)
    check_grammar(r.events)


async def test_an_overflow_gets_one_compaction_and_one_more_try(rig: MakeRig) -> None:
    r, session = await talked(rig, fails("overflow", error="too long"), answers("the notes"), answers("a4"), last=MUCH)
    outcome = await session.prompt(say("q4"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "a4")
    [end] = ends(r.events)
    assert (end.reason, end.will_retry) == ("overflow", True)
    assert isinstance(r.provider.requests[-1].messages[0], CompactionSummaryMessage)
    check_grammar(r.events)


async def test_a_second_overflow_ends_the_run_with_a_message(rig: MakeRig) -> None:
    """Never a third time, whatever the service says, also where still more could be summed up."""
    r, session = await talked(
        rig, fails("overflow"), answers("the notes"), answers("and on q2"), fails("overflow", error="still too long"),
        last=MUCH, compaction=CompactionOptions(reserve_tokens=200, keep_recent_tokens=300),
    )  # fmt: skip
    outcome = await session.prompt(say("q4 " + LONG))

    assert outcome is not None
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.message) == ("overflow", "still too long")
    assert len(ends(r.events)) == len(compactions(session)) == 1


async def test_a_new_message_may_be_recovered_again(rig: MakeRig) -> None:
    r, session = await talked(
        rig,
        fails("overflow"),
        answers("notes 1"),
        answers("a4 " + LONG, usage=MUCH),
        fails("overflow"),
        answers("notes 2"),
        answers("a5"),
        last=MUCH,
    )
    await session.prompt(say("q4 " + LONG))
    outcome = await session.prompt(say("q5"))

    assert outcome is not None
    assert outcome.outcome == "success"
    assert [event.reason for event in ends(r.events)] == ["overflow", "overflow"]


async def test_an_overflow_with_nothing_to_sum_up_is_said_at_once(rig: MakeRig) -> None:
    """One message that is too large stays too large."""
    r = rig(fails("overflow"), models=[SMALL])
    session = await r.open(model=SMALL.reference, compaction=OPTIONS)
    outcome = await session.prompt(say("q" * 300))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.kind == "overflow"
    assert not ends(r.events)


async def test_an_answer_without_room_for_a_word_is_an_overflow(rig: MakeRig) -> None:
    """Some services fill the window and stop, without an error."""
    r, session = await talked(
        rig,
        answers(stop_reason="length", usage=Usage(input=4_000, total_tokens=4_000)),
        answers("the notes"),
        answers("a4"),
        last=MUCH,
    )
    outcome = await session.prompt(say("q4"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "a4")
    assert [event.reason for event in ends(r.events)] == ["overflow"]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ([fails("invalid", error="secret words of the service")], "the model service failed"),
        ([answers("half", stop_reason="length")] * 2, "cut off"),
        ([answers("")], "empty summary"),
        ([answers(LONG * 20)], "no shorter"),
    ],
)
async def test_a_summary_that_is_no_good_leaves_the_session_as_it_was(
    rig: MakeRig, caplog: pytest.LogCaptureFixture, step: list[Step], words: str
) -> None:
    """The run goes on with what there is; the next one tries again."""
    r, session = await talked(rig, *step, answers("a4", usage=FULL), answers("the notes"), answers("a5"), last=FULL)
    before = list(session.manager.messages)
    outcome = await session.prompt(say("q4"))

    assert outcome is not None
    assert (outcome.outcome, outcome.text) == ("success", "a4")
    assert not compactions(session)
    assert session.manager.messages[: len(before)] == before
    [end] = ends(r.events)
    assert words in (end.error_message or "")
    assert "secret words" not in (end.error_message or "")
    [record] = [record for record in caplog.records if record.message == "compaction failed"]
    assert record.__dict__["facts"]["error_id"] in (end.error_message or "")

    await session.prompt(say("q5"))
    assert len(compactions(session)) == 1


async def test_a_failed_compaction_is_not_tried_at_every_turn(rig: MakeRig) -> None:
    """Twenty tool calls are not twenty summaries that fail."""
    r, session = await talked(
        rig, fails("invalid"), answers(call("c1", "look"), usage=FULL), answers(call("c2", "look"), usage=FULL), answers("a4"),
        last=FULL, tools=[FunctionTool("look")],
    )  # fmt: skip
    outcome = await session.prompt(say("q4"))

    assert outcome is not None
    assert outcome.text == "a4"
    assert len(ends(r.events)) == 1


async def test_a_summary_call_is_retried_and_charged(rig: MakeRig) -> None:
    """It is a call like any other; its cost is in no entry, so it is told by itself, that of a failed one too."""
    r, session = await talked(
        rig, fails("overloaded"), answers("the notes", usage=Usage(input=7)), answers("a4"), last=FULL, spending=Purse()
    )
    run = asyncio.create_task(session.prompt(say("q4")))
    await until(lambda: bool(r.clock.sleepers))
    await r.clock.advance(60)
    await run

    purse = session._state.spending
    assert isinstance(purse, Purse)
    assert [message.usage.input for message in purse.charged] == [0, 7]
    assert len(compactions(session)) == 1


class Purse:
    """Implements ``Spending``."""

    def __init__(self, refusals: Sequence[str | None] = ()) -> None:
        self.charged: list[AssistantMessage] = []
        self._refusals = list(refusals)

    async def refusal(self) -> str | None:
        return self._refusals.pop(0) if self._refusals else None

    async def charge(self, message: AssistantMessage) -> None:
        self.charged.append(message)


async def test_a_chat_that_has_spent_its_budget_makes_no_call(rig: MakeRig) -> None:
    """The prompt is stored, so that nothing said is lost; the person reads why."""
    r = rig(answers("tomorrow"))
    session = await r.open(spending=Purse(["All is spent."]))
    outcome = await session.prompt(say("q"))

    assert outcome is not None
    assert outcome.failure is not None
    assert (outcome.outcome, outcome.failure.kind, outcome.failure.message) == ("error", "budget", "All is spent.")
    assert not r.provider.requests
    assert roles(session.manager.messages) == ["user", "assistant(error)"]
    again = await session.prompt(say("q"))
    assert again is not None
    assert again.text == "tomorrow"


async def test_the_budget_is_looked_at_before_every_call(rig: MakeRig) -> None:
    """A run of a hundred steps cannot spend it all over again; a summary neither."""
    r = rig(answers(call("c1", "look")), tools=[FunctionTool("look")])
    session = await r.open(spending=Purse([None, "All is spent."]))
    outcome = await session.prompt(say("q"))

    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.kind == "budget"
    check_results(session.manager.messages)

    spent, talk = await talked(rig, last=FULL, spending=Purse([None] * 3 + ["All is spent."]))
    with pytest.raises(UserMustAct, match="All is spent"):
        await talk.compact()
    assert len(spent.provider.requests) == 3


async def test_no_secret_gets_into_a_summary(rig: MakeRig) -> None:
    _, session = await talked(rig, answers(f"the key is {SECRET}"), answers("a4"), last=FULL)
    await session.prompt(say("q4"))

    assert SECRET not in compactions(session)[0].summary
    assert "[REDACTED]" in compactions(session)[0].summary


async def test_what_must_survive_stands_in_every_request(rig: MakeRig) -> None:
    """As it is by the time of each compaction; an approval that was given meanwhile is open no more."""
    open_questions = ["Waiting for a yes: rm -r old"]
    _, session = await talked(
        rig, answers("notes 1"), answers("a4 " + LONG, usage=FULL), answers("notes 2"), answers("a5"), last=FULL,
        keep_verbatim=lambda: tuple(open_questions),
    )  # fmt: skip
    await session.prompt(say("q4 " + LONG))
    assert "Waiting for a yes: rm -r old" in compactions(session)[0].summary
    open_questions[:] = ["Waiting for a yes: git push"]
    await session.prompt(say("q5"))

    assert "rm -r old" not in compactions(session)[1].summary
    assert "Waiting for a yes: git push" in compactions(session)[1].summary


# Asked for


async def test_a_person_may_ask_for_it(rig: MakeRig) -> None:
    r, session = await talked(rig, answers("the notes"), last=MUCH)
    before = session.context_tokens()
    result = await session.compact("the prices")

    assert result is not None
    assert (result.summary, len(compactions(session))) == ("the notes", 1)
    assert "Look at this above all: the prices" in texts(r.provider.requests[-1].messages[0])
    assert session.context_tokens() < before
    with pytest.raises(UserMustAct, match="nothing to sum up"):
        await session.compact()


async def test_a_failure_is_told_to_whoever_asked(rig: MakeRig) -> None:
    _, session = await talked(rig, fails("auth"))
    with pytest.raises(RetryLater, match=r"does not accept this host's key.*\(error id-"):
        await session.compact()
    assert not session.compacting
    assert not compactions(session)


async def test_asked_for_during_a_run_it_is_done_in_the_next_pause(rig: MakeRig) -> None:
    """The run is not thrown away."""

    async def look(invocation: Any) -> Any:
        from features.contracts.tools import text_result

        assert await session.compact("x") is None
        return text_result("seen")

    r, session = await talked(rig, answers(call("c1", "look")), answers("the notes"), answers("a4"), tools=[FunctionTool("look", look)])
    outcome = await session.prompt(say("q4"))

    assert outcome is not None
    assert outcome.text == "a4"
    assert [event.reason for event in ends(r.events)] == ["manual"]
    assert not session.compacting
    check_results(r.provider.requests[-1].messages)


async def test_asked_for_in_the_last_turn_it_is_done_when_the_run_has_ended(rig: MakeRig) -> None:
    """The answer does not wait for it; the next prompt does."""
    r, session = await talked(rig, answers("a4"), answers("the notes"), answers("a5"))
    run = asyncio.create_task(session.prompt(say("q4")))
    await until(lambda: len(r.provider.requests) == 4)
    assert await session.compact() is None
    await run
    assert session.compacting
    outcome = await session.prompt(say("q5"))

    assert outcome is not None
    assert outcome.text == "a5"
    assert len(compactions(session)) == 1
    assert isinstance(r.provider.requests[-1].messages[0], CompactionSummaryMessage)


async def test_it_can_be_stopped_and_nothing_has_changed(rig: MakeRig) -> None:
    r, session = await talked(rig, hangs("half a summ"))
    before = list(session.manager.messages)
    asked = asyncio.create_task(session.compact())
    await until(lambda: len(r.provider.requests) == 4)
    waiting = asyncio.create_task(session.prompt(say("q4")))
    await asyncio.sleep(0)
    assert await session.abort()

    with pytest.raises(UserMustAct, match="Stopped"):
        await asked
    assert await waiting is None
    assert session.manager.messages == before
    assert not compactions(session)
    assert r.provider.open_streams == 0
    assert ends(r.events)[0].aborted


async def test_a_stop_during_a_compaction_of_a_run_stops_the_run(rig: MakeRig) -> None:
    r, session = await talked(rig, hangs("half"), last=FULL)
    run = asyncio.create_task(session.prompt(say("q4")))
    await until(lambda: len(r.provider.requests) == 4)
    await session.abort()
    outcome = await run

    assert outcome is not None
    assert outcome.outcome == "aborted"
    assert roles(session.manager.messages)[-2:] == ["user", "assistant(aborted)"]
    assert not compactions(session)
    check_grammar(r.events)


async def test_a_summary_for_a_branch_that_was_left_is_not_stored(rig: MakeRig) -> None:
    """It would stand for messages that are not there."""
    r, session = await talked(rig, answers("the notes"))
    first = session.manager.branch()[1].id

    async def leave() -> None:
        await until(lambda: len(r.provider.requests) == 4)
        await session.manager.branch_to(first)

    leaving = asyncio.create_task(leave())
    with pytest.raises(RetryLater, match="another way meanwhile"):
        await session.compact()
    await leaving

    assert not any(isinstance(entry, CompactionEntry) for entry in session.manager.entries)


async def test_a_session_goes_on_after_a_restart_with_its_summary(rig: MakeRig) -> None:
    r, session = await talked(rig, answers("the notes"), answers("a4"))
    await session.compact()
    await session.close()
    again = await r.open(model=SMALL.reference, compaction=OPTIONS)
    outcome = await again.prompt(say("q4"))

    assert outcome is not None
    assert outcome.text == "a4"
    assert texts(r.provider.requests[-1].messages[-1]) == "q4"
    assert isinstance(r.provider.requests[-1].messages[0], CompactionSummaryMessage)


async def test_notes_on_a_branch_that_is_left(rig: MakeRig) -> None:
    r, session = await talked(rig, answers("it led nowhere"), fails("billing"))

    assert await session.summarise_branch(session.manager.branch()[2:], "why") == (
        "it led nowhere", {"readFiles": [], "modifiedFiles": []},
    )  # fmt: skip
    assert "Look at this above all: why" in texts(r.provider.requests[-1].messages[0])
    with pytest.raises(PumiceError, match="run out of credit"):
        await session.summarise_branch(session.manager.branch()[2:])


STEPS = st.lists(st.sampled_from(["talk", "long", "full", "tools", "overflow", "compact", "bad summary", "reopen"]), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
async def test_whatever_happens_no_call_loses_its_result_and_every_run_ends(tmp_path: Any, steps: list[str]) -> None:
    """Any order of long answers, tool rounds, overflows, compactions that work or fail, and restarts."""
    r = Rig(tmp_path, models=[SMALL], tools=[FunctionTool("look")])
    script: dict[str, list[Step]] = {
        "long": [answers("a " + LONG)],
        "full": [answers("a", usage=FULL)],
        "tools": [answers(call("c1", "look"), call("c2", "look"), "t" * 200), answers(call("c3", "look"), usage=FULL), answers("a")],
        "overflow": [fails("overflow"), answers("a")],
    }
    bad = False

    def respond(summary: bool) -> Step:
        if summary:
            return fails("invalid") if bad else answers("notes")
        return pending.pop(0) if pending else answers("a")

    pending: list[Step] = []
    provider = r.models._provider = Responding(respond)
    session = await r.open(model=SMALL.reference, compaction=OPTIONS)
    for number, step in enumerate(steps):
        bad = step == "bad summary"
        if step == "reopen":
            await session.close()
            r.events.clear()
            session = await r.open(model=SMALL.reference, compaction=OPTIONS)
        elif step == "compact":
            with _told():
                await session.compact()
        else:
            pending[:] = script.get(step, [])
            outcome = await session.prompt(Prompt(text=f"q{number} {LONG}"))
            assert outcome is not None
            check_grammar(r.events)
        check_results(session.manager.messages)
    for request in provider.requests:
        check_results(request.messages)


class Responding:
    """A provider that answers by what it is asked."""

    name = "scripted"

    def __init__(self, respond: Callable[[bool], Step]) -> None:
        self._respond = respond
        self.requests: list[ModelRequest] = []

    async def stream(self, model: Any, request: Any) -> Any:
        self.requests.append(msgspec.structs.replace(request, messages=tuple(request.messages)))
        async for event in self._respond(request.session_id.endswith(":summary"))(model, request):
            yield event

    async def close(self) -> None:
        return


def _told() -> Any:
    from contextlib import suppress

    return suppress(PumiceError)
