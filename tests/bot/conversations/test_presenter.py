"""A run as its chat sees it while it goes on."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from bot.conversations.elapsed import elapsed
from bot.conversations.presenter import Presenter, Verbosity
from features.agent.testing import ScriptedProvider, answers, call, fails, hangs
from features.contracts.events import MessageUpdate, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from features.contracts.stream import TextDelta
from features.contracts.testing import FakeClock
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.bot.conversations.rig import eventually, opened


class View:
    lasting = True

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.lines: list[str | None] = []
        self.closed = 0

    def show(self, text: str) -> None:
        self.shown.append(text)

    def status(self, line: str | None) -> None:
        self.lines.append(line)

    async def close(self) -> str | None:
        self.closed += 1
        return "m1"


async def yes() -> bool:
    return True


async def nothing(text: str) -> None:
    return None


def presenter(view: View, *, stream: bool = True, verbose: Verbosity = "status", clock: FakeClock | None = None) -> Presenter:
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        tasks.add(task)
        return task

    return Presenter(view, clock=clock or FakeClock(), stream=stream, verbose=verbose, may_show=yes, spawn=spawn, tell=nothing)


def delta(text: str) -> MessageUpdate:
    return MessageUpdate(assistant_message_event=TextDelta(content_index=0, delta=text))


async def test_many_pieces_are_few_states() -> None:
    """A hundred kilobytes in ten thousand pieces: joined a few times, not ten thousand."""
    view = View()
    presents = presenter(view)
    for _ in range(10_000):
        presents.on_event(delta("0123456789"))
    await eventually(lambda: bool(view.shown))

    assert len(view.shown) == 1
    assert len(view.shown[0]) == 100_000
    await presents.close()


async def test_nothing_is_shown_after_the_end() -> None:
    """The final text comes by the outbox; a late draft would stand below it."""
    view = View()
    presents = presenter(view)
    presents.on_event(delta("too late"))
    assert await presents.close() == "m1"
    assert await presents.close() == "m1"
    await asyncio.sleep(0.3)

    assert view.shown == []
    assert view.closed == 1


async def test_without_streaming_only_the_status_is_shown() -> None:
    """One line that says what is being done, in words."""
    view = View()
    presents = presenter(view, stream=False)
    presents.on_event(delta("text"))
    presents.on_event(ToolExecutionStart(tool_call_id="c", tool_name="bash", args={"command": "ls\n  -la"}))
    await eventually(lambda: bool(view.lines))

    assert view.shown == []
    assert view.lines == ["bash ls -la"]
    await presents.close()


async def test_nothing_is_shown_before_it_is_written_down_that_something_may_be() -> None:
    """Either a text or a status may open a draft; a host that dies then must know that one may be there."""
    view, written = View(), asyncio.Event()

    async def may_show() -> bool:
        await written.wait()
        return True

    presents = Presenter(
        view, clock=FakeClock(), stream=True, verbose="status", may_show=may_show, spawn=asyncio.ensure_future, tell=nothing
    )
    presents.on_event(delta("text"))
    presents.on_event(ToolExecutionStart(tool_call_id="c", tool_name="bash", args={}))
    await asyncio.sleep(0.3)
    assert (view.shown, view.lines) == ([], [])
    written.set()
    await eventually(lambda: bool(view.shown and view.lines))
    await presents.close()


async def test_verbose_off_shows_no_tools() -> None:
    """Quiet means quiet."""
    view = View()
    presents = presenter(view, verbose="off")
    presents.on_event(ToolExecutionStart(tool_call_id="c", tool_name="bash", args={}))

    assert view.lines == []
    await presents.close()


async def test_a_silent_tool_is_seen_to_be_at_work() -> None:
    """The line says for how long, in steps, so that no platform has to edit it every second."""
    view, clock = View(), FakeClock()
    presents = presenter(view, clock=clock)
    presents.on_event(ToolExecutionStart(tool_call_id="c", tool_name="bash", args={"command": "make"}))
    for _ in range(40):
        await clock.advance(5)

    assert list(dict.fromkeys(view.lines)) == [
        "bash make", "bash make, 15 s", "bash make, 30 s", "bash make, 45 s", "bash make, 1 min", "bash make, 2 min", "bash make, 3 min",
    ]  # fmt: skip
    presents.on_event(ToolExecutionEnd(tool_call_id="c", tool_name="bash", content=[], is_error=False))
    assert view.lines[-1] is None
    await clock.advance(0)
    assert clock.sleepers == 0, "nothing beats for a tool that is done"
    await presents.close()


async def test_progress_is_shown_at_a_pace_that_people_can_follow() -> None:
    """A build that prints a thousand lines changes one line now and then; the last it said is what is shown."""
    view, clock = View(), FakeClock()
    presents = presenter(view, clock=clock)
    presents.on_event(ToolExecutionStart(tool_call_id="c", tool_name="bash", args={"command": "make"}))
    await eventually(lambda: bool(view.lines))
    for number in range(1000):
        presents.on_event(
            ToolExecutionUpdate(tool_call_id="c", tool_name="bash", partial_result=f"old\n[{number}]  compiling\n" + "x" * 90 + "\n\n")
        )
    assert view.lines == ["bash make"]
    presents.on_event(ToolExecutionUpdate(tool_call_id="c", tool_name="bash", partial_result="one\n[9/9]   linking\n"))
    await clock.advance(5)

    assert view.lines[1:] == ["bash make: [9/9] linking"]
    await clock.advance(60)
    assert view.lines[-1] == "bash make, 1 min: [9/9] linking"
    await presents.close()
    await clock.advance(60)
    assert clock.sleepers == 0


async def test_of_several_tools_the_latest_is_named() -> None:
    """One line is one line; what else is to be said stands behind it."""
    view, clock = View(), FakeClock()
    presents = presenter(view, clock=clock)
    presents.on_event(ToolExecutionStart(tool_call_id="1", tool_name="bash", args={"command": "make"}))
    await clock.advance(60)
    presents.on_event(ToolExecutionStart(tool_call_id="2", tool_name="read", args={"path": "a"}))
    presents.note(["waits for an answer"])
    assert view.lines[-1] == "read a (and 1 more) · waits for an answer"
    presents.on_event(ToolExecutionEnd(tool_call_id="2", tool_name="read", content=[], is_error=False))

    assert view.lines[-1] == "bash make, 1 min · waits for an answer"
    await presents.close()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, ""), (14.9, ""), (15, "15 s"), (59, "45 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (7500, "2 h 5 min")],
)
def test_how_long(seconds: float, said: str) -> None:
    """As people say it."""
    assert elapsed(seconds) == said


async def test_a_tool_that_is_silent_for_hours_is_let_be(tmp_path: Path) -> None:
    """Nothing but its own timeout or a person ends it; the chat is not taken for idle meanwhile."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def works(call: ToolInvocation) -> ToolResult:
        begun.set()
        await go_on.wait()
        return text_result("built")

    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), answers("done"))) as rig:
        rig.tool._run = works
        sweeping = asyncio.create_task(rig.conversations.sweep())
        rig.chat().says("build it")
        await begun.wait()
        for _ in range(5):
            await rig.clock.advance(3600)
        assert rig.conversation().status().running_tools == ("work, 5 h",)
        assert "work, 5 h" in rig.channel.status
        go_on.set()

        assert (await rig.chat().answer()).text == "done"
        sweeping.cancel()


async def test_a_failed_attempt_disappears_from_the_draft(tmp_path: Path) -> None:
    """The retry's text stands in its place, not behind it."""
    provider = ScriptedProvider(fails("overloaded", "wrong beginning"), hangs("right"))
    async with opened(tmp_path, provider, stream=True) as rig:
        rig.chat().says("hello")
        await rig.asked(1)
        await eventually(lambda: rig.clock.sleepers >= 1)
        await rig.clock.advance(10)
        draft = await rig.chat().draft("right")

        assert draft.text == "right"


async def test_the_draft_ends_as_the_whole_answer_in_the_same_message(tmp_path: Path) -> None:
    """Never two messages, never a torso."""
    long = "A long story. " * 30

    async with opened(tmp_path, ScriptedProvider(answers(long, chunk=2)), stream=True) as rig:
        rig.chat().says("tell me")
        answer = await rig.chat().answer()
        await rig.idle()

        assert answer.text == long.strip()
        assert len(rig.chat().shown) == 1
        assert rig.channel.typing == set()


async def test_full_tells_every_tool_in_a_message_of_its_own(tmp_path: Path) -> None:
    """For those who asked to see everything."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work", text="hard")), answers("done")), verbose="full") as rig:
        rig.chat().says("work")
        first, second = await rig.chat().answer(), await rig.chat().answer()

        assert "work hard" in first.text
        assert "work done" in first.text
        assert second.text == "done"


async def test_typing_ends_with_an_error_too(tmp_path: Path) -> None:
    """An indicator that goes on for ever says that somebody is there who is not."""
    async with opened(tmp_path, ScriptedProvider(fails("invalid"))) as rig:
        rig.chat().says("hello")
        await rig.chat().answer()
        await rig.idle()

        assert rig.channel.typing == set()
