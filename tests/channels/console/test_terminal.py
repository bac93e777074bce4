"""A conversation in a terminal, typed into a pipe."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from channels.console import ConsoleEvent, TerminalChat
from channels.console.block_splitter import BlockSplitter
from channels.console.file_mentions import said_files
from channels.console.testing import MemoryConnection
from channels.console.transcript import Transcript


class Rig:
    def __init__(self, chat: MemoryConnection, keys: PipeInput, screen: io.StringIO) -> None:
        self.chat = chat
        self.keys = keys
        self.screen = screen

    async def until(self, text: str) -> None:
        async with asyncio.timeout(5):
            while text not in self.screen.getvalue():  # noqa: ASYNC110 - it tells nobody when it changes
                await asyncio.sleep(0.01)

    async def posted(self, count: int) -> list[str]:
        async with asyncio.timeout(5):
            while len(self.chat.posted) < count:  # noqa: ASYNC110 - it tells nobody when it changes
                await asyncio.sleep(0.01)
        return [text for text, _ in self.chat.posted]


@asynccontextmanager
async def terminal(tmp_path: Path) -> AsyncIterator[Rig]:
    """A terminal that is open; leaving it types Ctrl-D."""
    chat, screen = MemoryConnection(), io.StringIO()
    with create_pipe_input() as keys:
        console = Console(file=screen, width=100, force_terminal=False)
        ui = TerminalChat(
            chat, history=tmp_path / "history", folder=tmp_path, input=keys, output=DummyOutput(), make_console=lambda: console
        )
        running = asyncio.create_task(ui.run())
        rig = Rig(chat, keys, screen)
        await rig.until("Ctrl-D")
        yield rig
        keys.send_text("\x04")
        async with asyncio.timeout(5):
            await running


async def test_an_answer_streams_block_by_block_and_is_shown_once(tmp_path: Path) -> None:
    """Formatted; what was delivered is not printed again."""
    async with terminal(tmp_path) as rig:

        def reply(identifier: str, text: str) -> None:
            rig.chat.tell("agent_start")
            rig.chat.stream("# Head", "ing\n\nfirst **par", "agraph**\n\nlast")
            rig.chat.deliver("# Heading\n\nfirst **paragraph**\n\nlast", identifier)
            rig.chat.tell("agent_settled", outcome="success")
            rig.chat.deliver("the end")

        rig.chat.reply = reply
        rig.keys.send_text("hello\r")
        await rig.until("the end")

    shown = rig.screen.getvalue()
    assert shown.count("Heading") == shown.count("first paragraph") == shown.count("last") == 1
    assert "**" not in shown
    assert (tmp_path / "history").read_text().endswith("+hello\n")


async def test_blocks_are_one_empty_line_apart(tmp_path: Path) -> None:
    """Lists and code come from the formatter with empty lines of their own around them."""
    async with terminal(tmp_path) as rig:
        rig.chat.stream("I know:\n\n- one\n- two\n\n```\ncode\n```\n\nlast")
        rig.chat.deliver("the end")
        await rig.until("the end")

    shown = [line.strip() for line in rig.screen.getvalue().splitlines()]
    assert shown[shown.index("I know:") :] == ["I know:", "", "• one", "• two", "", "code", "", "last", "", "the end", ""]


async def test_an_answer_whose_beginning_was_missed_is_shown_whole(tmp_path: Path) -> None:
    """The terminal was opened while it streamed."""
    async with terminal(tmp_path) as rig:
        rig.chat.tell("message_update", assistantMessageEvent={"type": "text_delta", "contentIndex": 0, "delta": "half"})
        rig.chat.tell("message_end", message={"role": "assistant", "content": [{"type": "text", "text": "other half"}]}, entryId="e")
        await rig.until("other half")


async def test_buttons_and_files_are_shown_as_something_to_type_and_to_open(tmp_path: Path) -> None:
    """A terminal has nothing to press."""
    async with terminal(tmp_path) as rig:
        rig.chat.deliver("Which?", buttons=[[{"label": "Fast", "command": "/model a/b"}]], files=[{"name": "a.pdf", "url": "/f/0"}])
        await rig.until("/model a/b")

        assert "a.pdf" in rig.screen.getvalue()


def test_the_status_says_what_goes_on_and_for_how_long() -> None:
    """As the host tells it; nothing once the run is over."""
    seen = []
    transcript = Transcript(Console(file=io.StringIO()), changed=lambda: seen.append(transcript.status))
    for name, data in (
        ("agent_start", {}),
        ("tool_execution_start", {"toolName": "bash"}),
        ("status", {"line": "bash make, 2 min · waits for an answer"}),
        ("status", {"line": None}),
        ("agent_settled", {"outcome": "success"}),
    ):
        transcript.take(ConsoleEvent(name, data))

    assert seen == ["Working…", "Running bash…", "bash make, 2 min · waits for an answer", "Working…", ""]


async def test_a_question_says_how_it_ended(tmp_path: Path) -> None:
    """What is printed cannot be taken back."""
    async with terminal(tmp_path) as rig:
        rig.chat.deliver("May I?", buttons=[[{"label": "Allow once", "command": "/answer q 1"}]])
        await rig.until("Allow once: /answer q 1")
        rig.chat.tell("changed", id="000001", role="assistant", text="May I?\n\nNo answer in 5 minutes, so it counts as no.")
        await rig.until("No answer in 5 minutes")

        assert rig.screen.getvalue().count("May I?") == 1


async def test_ctrl_c_stops_a_run_and_is_harmless_without_one(tmp_path: Path) -> None:
    """It never throws the person out."""
    async with terminal(tmp_path) as rig:
        rig.keys.send_text("\x03")
        await rig.until("Nothing is running")
        rig.chat.tell("agent_start")
        rig.chat.deliver("it began")
        await rig.until("it began")
        rig.keys.send_text("\x03")

        assert await rig.posted(1) == ["/stop"]


async def test_files_go_with_a_message(tmp_path: Path) -> None:
    """By mention."""
    (tmp_path / "a.png").write_bytes(b"x")
    async with terminal(tmp_path) as rig:
        rig.keys.send_text("look at @a.png please\r")
        await rig.posted(1)

    assert rig.chat.posted == [("look at @a.png please", (tmp_path / "a.png",))]


async def test_what_was_said_while_the_connection_was_lost_is_shown(tmp_path: Path) -> None:
    """Once."""
    async with terminal(tmp_path) as rig:
        rig.chat.deliver("before")
        await rig.until("before")
        rig.chat.deliver("meanwhile", told=False)
        rig.chat.tell("connected")
        rig.chat.deliver("after")
        await rig.until("after")

    assert rig.screen.getvalue().count("before") == rig.screen.getvalue().count("meanwhile") == 1


def test_code_with_blank_lines_stays_one_block() -> None:
    """A terminal cannot mend what it has printed."""
    splitter = BlockSplitter()
    text = "intro\n\n```py\na\n\nb\n```\n\n~~~\n```\n\n~~~\ntail"
    blocks = [block for character in text for block in splitter.feed(character)]

    assert blocks == ["intro", "```py\na\n\nb\n```"]
    assert splitter.finish() == "~~~\n```\n\n~~~\ntail"
    assert splitter.finish() == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see @a.txt and @b/c.txt", ["a.txt", "b/c.txt"]),
        ('@"with space.txt"', ["with space.txt"]),
        ("mail me@a.txt or @nobody", []),
        ("/status", []),
        ("{folder}/a.txt", ["a.txt"]),
        ("'{folder}/with space.txt' {folder}/a.txt", ["with space.txt", "a.txt"]),
        ("{folder}/a.txt is odd", []),
        ("/it's", []),
        ("@" + "x" * 5000, []),
    ],
)
def test_only_files_that_are_there_count(tmp_path: Path, text: str, found: list[str]) -> None:
    """A name is attached, an address and a command stay text."""
    (tmp_path / "b").mkdir()
    for name in ("a.txt", "b/c.txt", "with space.txt"):
        (tmp_path / name).touch()

    assert said_files(text.replace("{folder}", str(tmp_path)), tmp_path) == [tmp_path / name for name in found]
