"""A run as its chat sees it while it goes on."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from bot.conversations.presenter import Presenter, Verbosity
from features.agent.testing import ScriptedProvider, answers, call, fails, hangs
from features.contracts.events import MessageUpdate, ToolExecutionStart
from features.contracts.stream import TextDelta
from features.contracts.testing import FakeClock
from tests.bot.conversations.rig import eventually, opened


class View:
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
