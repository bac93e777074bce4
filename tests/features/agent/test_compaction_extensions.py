"""Extensions and compactions: the gate, a summary of their own, what they put before the model."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from features.agent import AgentSession
from features.agent.testing import answers
from features.contracts.errors import RetryLater, UserMustAct
from features.contracts.events import CompactionEnd
from features.contracts.extension_events import BeforeCompaction, CompactionDone, CompactionFailed, ExtensionEvent
from features.contracts.extensions import ExtensionApi, ExtensionSpec
from features.contracts.sessions import CompactionEntry
from tests.features.agent.rig import SECRET, Rig, say, texts
from tests.features.agent.test_compaction import FULL, LONG, OPTIONS, SMALL, Responding, compactions, ends

MakeRig = Callable[..., Rig]
Handler = Callable[[Any], Awaitable[None]]


class Listener:
    """An extension that hears of compactions; ``asked`` is what it does at the gate. ``stored`` is what was in the session by then."""

    def __init__(self, asked: Handler | None = None) -> None:
        self.heard: list[ExtensionEvent] = []
        self.stored: list[int] = []
        self.api: ExtensionApi | None = None
        self._asked = asked

    def spec(self) -> ExtensionSpec:
        async def activate(api: ExtensionApi) -> None:
            self.api = api
            for kind in (BeforeCompaction, CompactionDone, CompactionFailed):
                api.on(kind, self._hear)

        return ExtensionSpec(name="listener", activate=activate)

    async def _hear(self, event: ExtensionEvent) -> None:
        assert self.api is not None
        self.heard.append(event)
        self.stored.append(sum(isinstance(entry, CompactionEntry) for entry in self.api.session.branch()))
        if isinstance(event, BeforeCompaction) and self._asked is not None:
            await self._asked(event)


async def talked(rig: MakeRig, listener: Listener, *steps: Any) -> tuple[Rig, AgentSession]:
    r = rig(answers("a1 " + LONG), answers("a2 " + LONG), *steps, models=[SMALL])
    session = await r.open(model=SMALL.reference, compaction=OPTIONS, extensions=(listener.spec(),))
    await session.prompt(say("q1 " + LONG))
    await session.prompt(say("q2 " + LONG))
    r.events.clear()
    return r, session


async def test_the_gate_comes_first_and_the_news_after_the_commit(rig: MakeRig) -> None:
    """Whoever hears of a success can rely on it."""
    listener = Listener()
    _, session = await talked(rig, listener, answers("the notes"), answers("on q2"))
    await session.compact("the prices")
    gate, done = listener.heard

    assert isinstance(gate, BeforeCompaction)
    assert isinstance(done, CompactionDone)
    assert (gate.reason, gate.instructions, len(gate.history)) == ("manual", "the prices", 2)
    assert (done.entry.summary, done.from_extension) == (compactions(session)[0].summary, False)
    assert listener.stored == [0, 1]
    await session.close()


async def test_a_gate_that_says_no_is_obeyed(rig: MakeRig) -> None:
    """Nothing is asked, nothing changes, and the person reads why."""

    async def refuse(event: BeforeCompaction) -> None:
        event.cancel("we are in the middle of something")

    r, session = await talked(rig, Listener(refuse))
    with pytest.raises(UserMustAct, match="Nothing was summed up: we are in the middle of something"):
        await session.compact()

    assert len(r.provider.requests) == 2
    assert not compactions(session)
    await session.close()


async def test_a_gate_that_breaks_is_shut(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(event: BeforeCompaction) -> None:
        raise ValueError("no")

    r, session = await talked(rig, Listener(broken))
    with pytest.raises(UserMustAct):
        await session.compact()

    assert len(r.provider.requests) == 2
    await session.close()


async def test_an_extension_may_write_the_summary_itself(rig: MakeRig) -> None:
    """No model is asked; its details are kept as they are, its files are not taken for ours the next time, secrets are taken out."""

    async def write(event: BeforeCompaction) -> None:
        event.use(f"my own notes {SECRET}", details={"mine": 1})

    listener = Listener(write)
    r, session = await talked(rig, listener)
    await session.compact()
    [entry] = compactions(session)

    assert (entry.summary, entry.details, entry.from_hook) == ("my own notes [REDACTED]", {"mine": 1}, True)
    assert len(r.provider.requests) == 2
    [end] = [event for event in r.events if isinstance(event, CompactionEnd)]
    assert end.result is not None
    assert end.result.from_extension
    await session.close()


async def test_a_summary_of_an_extension_must_be_shorter_too(rig: MakeRig) -> None:
    async def write(event: BeforeCompaction) -> None:
        event.use(LONG * 20)

    listener = Listener(write)
    _, session = await talked(rig, listener)
    with pytest.raises(RetryLater, match="no shorter"):
        await session.compact()

    assert isinstance(listener.heard[-1], CompactionFailed)
    assert not compactions(session)
    await session.close()


async def test_what_an_extension_pins_is_in_every_request_and_in_no_summary(rig: MakeRig) -> None:
    """Through a dozen compactions by a model that drops every rule; it is not summed up, so it never fades and never doubles."""

    async def activate(api: ExtensionApi) -> None:
        async def pin(event: ExtensionEvent) -> None:
            await api.model_context("above", "RULE ABOVE: ask first", place="system_prompt")
            await api.model_context("beside", "RULE BESIDE: ask first", place="message")

        from features.contracts.extension_events import SessionStarted

        api.on(SessionStarted, pin)

    r = rig(models=[SMALL])
    provider = r.models._provider = Responding(lambda summary: answers("notes") if summary else answers("a " + LONG, usage=FULL))
    session = await r.open(model=SMALL.reference, compaction=OPTIONS, extensions=(ExtensionSpec(name="pins", activate=activate),))
    for number in range(14):
        await session.prompt(say(f"q{number} {LONG}"))
    talk = [request for request in provider.requests if not request.session_id.endswith(":summary")]

    assert len(compactions(session)) >= 12
    for request in talk:
        assert "RULE ABOVE: ask first" in request.system_prompt
        assert "".join(map(texts, request.messages)).count("RULE BESIDE: ask first") == 1
    assert not any("RULE" in entry.summary for entry in compactions(session))
    assert all(end.result is not None for end in ends(r.events))
    await session.close()
