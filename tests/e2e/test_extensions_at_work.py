"""Extensions and hooks in real sessions: a chat, the whole host, a model's service on the loopback."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bot.clock import SystemClock
from bot.testing import LoopbackChannel, LoopbackChat
from tests.e2e.rig import configured, running, with_anthropic
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Call, Reply

EXAMPLES = Path(__file__).parents[2] / "examples" / "extensions"
CONFIG = """
processes.sandbox = "none"
[access]
owners = ["telegram:1"]
[chat]
stream = false
"""
COUNTING = """
from features.contracts.extensions import CommandResult, ExtensionCommand

async def activate(api):
    {first}
    async def run(arguments):
        return CommandResult(text="{word}")
    api.register_command(ExtensionCommand(name="word", description="Says a word.", run=run))
"""


def extension(word: str, first: str = "pass") -> str:
    return COUNTING.format(word=word, first=first)


@asynccontextmanager
async def chat_with(folder: Path, model: AnthropicServer, text: str) -> AsyncIterator[LoopbackChat]:
    loop = LoopbackChannel("telegram", clock=SystemClock(), part_size=100_000)
    async with running(configured(folder, CONFIG + text + with_anthropic(model)), channels=[loop]):
        yield loop.chat("1")


async def says(chat: LoopbackChat, text: str) -> str:
    chat.says(text)
    return (await chat.answer()).text


def example(name: str, config: str = "") -> str:
    return f"[extensions]\npaths = ['{EXAMPLES}/{name}.py']\n[extensions.config.{name.replace('_', '-')}]\n{config}\n"


def results(model: AnthropicServer, request: int = -1) -> str:
    """What the model read last: among it the results of its tools."""
    return json.dumps(model.requests[request].body["messages"][-1])


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what is watched sets no event
            await asyncio.sleep(0.01)


def workspace(folder: Path) -> Path:
    return folder / "data" / "workspaces" / "telegram-1"


async def test_the_permission_gate_holds_back_a_command_that_nobody_allows(tmp_path: Path) -> None:
    """The command does not run, the model reads why, and a harmless one of the same answer runs."""
    calls = (Call(name="bash", arguments={"command": "touch no; rm -f x"}), Call(name="bash", arguments={"command": "touch yes"}))
    async with (
        AnthropicServer([Reply(calls=calls), Reply(text="I asked.")]) as model,
        chat_with(tmp_path, model, example("permission_gate", "timeout_s = 0.2")) as chat,
    ):
        chat.says("tidy up")
        await until(lambda: len(model.requests) == 2)

        assert "did not allow this command" in results(model)
        await until(lambda: any(shown.text == "I asked." for shown in chat.shown))
    assert (workspace(tmp_path) / "yes").exists()
    assert not (workspace(tmp_path) / "no").exists()


async def test_the_permission_gate_lets_through_what_the_person_allows(tmp_path: Path) -> None:
    """Asked in the chat, with buttons."""
    call = Call(name="bash", arguments={"command": "touch yes; rm -f x"})
    async with (
        AnthropicServer([Reply(calls=[call]), Reply(text="Done it.")]) as model,
        chat_with(tmp_path, model, example("permission_gate")) as chat,
    ):
        chat.says("tidy up")
        await until(lambda: any(shown.buttons for shown in chat.shown))
        (asked,) = [shown for shown in chat.shown if shown.buttons]
        assert "touch yes; rm -f x" in asked.text
        chat.presses(asked.buttons[0][0])
        await until(lambda: any(shown.text == "Done it." for shown in chat.shown))
    assert (workspace(tmp_path) / "yes").exists()


async def test_the_todo_list_goes_back_with_the_branch(tmp_path: Path) -> None:
    """Undoing the request undoes what it noted."""
    add = [Reply(calls=[Call(name="todo", arguments={"action": "add", "text": text})]) for text in ("one", "two")]
    script = [add[0], Reply(text="Noted one."), add[1], Reply(text="Noted two.")]
    async with AnthropicServer(script) as model, chat_with(tmp_path, model, example("todo")) as chat:
        assert await says(chat, "note one") == "Noted one."
        assert await says(chat, "note two") == "Noted two."
        assert await says(chat, "/todo") == "1. [ ] one\n2. [ ] two"
        await says(chat, "/undo")
        assert await says(chat, "/todo") == "1. [ ] one"


async def test_the_todo_list_is_the_sessions_own_and_outlives_the_host(tmp_path: Path) -> None:
    """The model writes, the person reads; another session has another list, and going back brings it back."""
    script = [Reply(calls=[Call(name="todo", arguments={"action": "add", "text": "buy milk"})]), Reply(text="Noted.")]
    async with AnthropicServer(script) as model:
        async with chat_with(tmp_path, model, example("todo")) as chat:
            assert await says(chat, "remember the milk") == "Noted."
            assert await says(chat, "/todo") == "1. [ ] buy milk"
        async with chat_with(tmp_path, model, example("todo")) as chat:
            assert await says(chat, "/todo") == "1. [ ] buy milk"
            model.script.append(Reply(text="Milk."))
            assert await says(chat, "what is open?") == "Milk."
            assert "Open items of the todo list:\\n- buy milk" in json.dumps(model.request["system"])
            await says(chat, "/new")
            assert await says(chat, "/todo") == "The todo list is empty."


async def test_the_path_guard_protects_a_file(tmp_path: Path) -> None:
    """Another one is written."""
    calls = [Call(name="write", arguments={"path": name, "content": "x"}) for name in (".env", "plan.txt")]
    async with (
        AnthropicServer([Reply(calls=calls), Reply(text="Half of it.")]) as model,
        chat_with(tmp_path, model, example("path_guard")) as chat,
    ):
        assert await says(chat, "write both") == "Half of it."
        assert ".env is protected in this chat" in results(model)
    assert (workspace(tmp_path) / "plan.txt").read_text() == "x"
    assert not (workspace(tmp_path) / ".env").exists()


async def test_the_parrot_can_be_chosen_and_answers(tmp_path: Path) -> None:
    """Also after a restart, since the session keeps its model."""
    async with AnthropicServer() as model:
        async with chat_with(tmp_path, model, example("parrot_provider")) as chat:
            await says(chat, "/model parrot/loud")
            assert (await says(chat, "hello there")).strip().endswith("HELLO THERE")
        async with chat_with(tmp_path, model, example("parrot_provider")) as chat:
            assert (await says(chat, "and again")).strip().endswith("AND AGAIN")


async def test_the_custom_compaction_is_taken(tmp_path: Path) -> None:
    """The model is not asked for a summary, and reads the extension's."""
    script = [Reply(text="Answer one.\n" + "On and on. " * 2000), Reply(text="Answer two."), Reply(text="Answer three.")]
    small = "[compaction]\nkeep_recent_tokens = 1\n"
    async with (
        AnthropicServer(script) as model,
        chat_with(tmp_path, model, small + example("custom_compaction")) as chat,
    ):
        await says(chat, "plan the trip to Rome " + "and think of everything that belongs to it " * 40)
        await says(chat, "and the way back")
        await says(chat, "/compact")
        assert len(model.requests) == 2, "no model was asked for the summary"
        assert await says(chat, "go on") == "Answer three."
        assert "The person said: plan the trip to Rome" in json.dumps(model.request)


async def test_what_is_loaded_again_is_at_work_at_once(tmp_path: Path) -> None:
    """Without a restart, in the chat where it was asked for."""
    (tmp_path / "word.py").write_text(extension("one"))
    async with AnthropicServer() as model, chat_with(tmp_path, model, "[extensions]\npaths = ['word.py']\n") as chat:
        await says(chat, "/extensions")
        assert await says(chat, "/word") == "one"
        (tmp_path / "word.py").write_text(extension("two"))
        await says(chat, "/reload")
        assert await says(chat, "/word") == "two"


async def test_what_nobody_trusts_never_runs(tmp_path: Path) -> None:
    """Not even its import; once trusted it works."""
    mark = tmp_path / "mark"
    own = workspace(tmp_path) / ".pumice" / "extensions"
    own.mkdir(parents=True)
    (own / "word.py").write_text(f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n" + extension("mine"))
    async with AnthropicServer([Reply(text="Hello.")]) as model, chat_with(tmp_path, model, "") as chat:
        chat.says("hello")
        await until(lambda: any(shown.text == "Hello." for shown in chat.shown))
        assert not mark.exists()
        chat.says("/extensions")
        await until(lambda: any("trust" in button for shown in chat.shown for row in shown.buttons for button in row))
        (trust,) = [button for shown in chat.shown for row in shown.buttons for button in row if "trust" in button]
        chat.presses(trust)
        await until(lambda: any("`word` active" in shown.text for shown in chat.shown))
        chat.says("/word")
        await until(lambda: any(shown.text == "mine" for shown in chat.shown))
    assert mark.exists()


async def test_one_that_fails_in_a_session_is_shown_with_the_reason(tmp_path: Path) -> None:
    """It could be loaded, and its activation raises."""
    (tmp_path / "word.py").write_text(extension("one", first="raise RuntimeError('no luck')"))
    async with AnthropicServer() as model, chat_with(tmp_path, model, "[extensions]\npaths = ['word.py']\n") as chat:
        assert "- `word` failed: RuntimeError: no luck" in await says(chat, "/extensions")


async def test_a_hook_is_called_from_a_real_session(tmp_path: Path) -> None:
    """With the chat's facts, and after an answer that it has not delayed."""
    hook = tmp_path / "hook.sh"
    hook.write_text('#!/bin/sh\ncp "$PUMICE_PAYLOAD" payload.json; echo "$PUMICE_EVENT $PUMICE_CHAT $PUMICE_OUTCOME" > facts.txt\n')
    hook.chmod(0o755)
    text = "[[hooks]]\nevent = 'agent_settled'\ncommand = ['./hook.sh']\n"
    async with AnthropicServer([Reply(text="Hello.")]) as model, chat_with(tmp_path, model, text) as chat:
        assert await says(chat, "hello") == "Hello."
        await until((workspace(tmp_path) / "facts.txt").exists)
    assert (workspace(tmp_path) / "facts.txt").read_text() == "agent_settled telegram:1 success\n"
    assert json.loads((workspace(tmp_path) / "payload.json").read_text())["data"] == {"outcome": "success"}


async def test_one_that_breaks_at_work_is_taken_out_and_shown_and_comes_back(tmp_path: Path) -> None:
    """After three failures in a row; the chat goes on, and loading again is another chance."""
    text = extension("one", first="api.on(AgentStarted, fail)")
    text += "\nfrom features.contracts.extension_events import AgentStarted\n\nasync def fail(event):\n    raise RuntimeError('no luck')\n"
    (tmp_path / "word.py").write_text(text)
    script = [Reply(text=f"Answer {number}.") for number in range(3)]
    async with AnthropicServer(script) as model, chat_with(tmp_path, model, "[extensions]\npaths = ['word.py']\n") as chat:
        for number in range(3):
            assert await says(chat, "go on") == f"Answer {number}."
        assert "- `word` failed: its handler of agent\\_start failed 3 times in a row" in await says(chat, "/extensions")
        assert "- `word` active" in await says(chat, "/reload")
