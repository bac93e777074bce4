"""Claude Code through its SDK, against a program that speaks its protocol."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from features.contracts.messages import AssistantMessage, Message, TextBlock, ThinkingBlock, ToolCall
from features.contracts.models import ModelRequest, ThinkingLevel
from features.contracts.stream import TextDelta
from features.models import ModelRegistry, ProviderConfig
from features.models.sse import StreamLimits
from tests.environment import needs_package
from tests.features.models.claude import FakeClaude
from tests.features.models.rig import BASH, IMAGE, Outcome, Rig, assistant, call, result, tool_call, user

pytestmark = needs_package("claude_agent_sdk", "claude-code")
SONNET = "claude/claude-sonnet-5-5"


def registry_of(rig: Rig, claude: FakeClaude, *, limits: StreamLimits | None = None, **fields: Any) -> ModelRegistry:
    config = ProviderConfig(name="claude", kind="claude-code", command=str(claude.program), **fields)
    return rig.registry(config, limits=limits)


async def gone(claude: FakeClaude, *pids: int) -> None:
    """Wait until processes have ended; the test's own timeout is the limit."""
    while claude.running() & set(pids):  # noqa: ASYNC110 - the system tells nobody but the parent
        await asyncio.sleep(0.01)


async def ask(registry: ModelRegistry, messages: Sequence[Message] | str, *, session: str = "s", **options: Any) -> Outcome:
    return await call(registry, SONNET, messages, session_id=session, tools=options.pop("tools", [BASH]), **options)


async def test_text_and_thinking_stream_and_the_usage_is_counted(tmp_path: Path, rig: Rig) -> None:
    """The very events of the model come through."""
    claude = FakeClaude(tmp_path, {"thinking": "Hm.", "text": "The answer is a longer text.", "cache_read": 4})
    outcome = await ask(registry_of(rig, claude, api_key="sk-ant-api-key-123"), "hi", thinking="high")

    assert outcome.text == "The answer is a longer text."
    assert outcome.kinds.count("text_delta") == 2
    assert outcome.done.content == [ThinkingBlock(thinking="Hm."), TextBlock(text="The answer is a longer text.")]
    assert (outcome.done.usage.input, outcome.done.usage.cache_read, outcome.done.usage.output) == (10, 4, 5)
    assert outcome.done.usage.cost.total > 0
    assert (outcome.done.api, outcome.done.provider, outcome.done.model) == ("claude-code", "claude", "claude-sonnet-5-5")
    assert outcome.is_well_formed()


async def test_its_own_login_costs_nothing_by_the_token(tmp_path: Path, rig: Rig) -> None:
    """Without a key it uses the subscription that it was logged in with."""
    claude = FakeClaude(tmp_path, {"text": "hi"})

    assert (await ask(registry_of(rig, claude), "hi")).done.usage.cost.total == 0


async def test_the_agents_tools_run_where_the_agent_runs_them(tmp_path: Path, rig: Rig) -> None:
    """A call ends the model call; its result goes on in the same process, which waited for it."""
    calls = [{"name": "bash", "arguments": {"command": "ls"}}, {"name": "bash", "arguments": {"command": "pwd"}}]
    claude = FakeClaude(tmp_path, {"text": "I look.", "calls": calls}, {"text": "Two files."})
    registry = registry_of(rig, claude)
    first = await ask(registry, "what is here?")
    one, two = [block for block in first.done.content if isinstance(block, ToolCall)]
    history: list[Message] = [
        user("what is here?"),
        first.done,
        result(two.id, "/home"),
        result(one.id, "a b", blocks=[TextBlock(text="a b"), IMAGE]),
    ]
    second = await ask(registry, history)

    assert (first.done.stop_reason, one.name, one.arguments) == ("toolUse", "bash", {"command": "ls"})
    assert second.done.content == [TextBlock(text="Two files.")]
    assert len(claude.log("start")) == 1
    assert [entry["content"][0]["text"] for entry in claude.log("result")] == ["a b", "/home"]
    assert claude.log("result")[0]["content"][1] == {"type": "image", "data": IMAGE.data, "mimeType": "image/png"}


async def test_a_failed_tool_is_told_as_failed(tmp_path: Path, rig: Rig) -> None:
    """The model must not take the error for an answer."""
    claude = FakeClaude(tmp_path, {"calls": [{"name": "bash"}]}, {"text": "Pity."})
    registry = registry_of(rig, claude)
    first = await ask(registry, "go")
    (block,) = first.done.content
    assert isinstance(block, ToolCall)
    await ask(registry, [user("go"), first.done, result(block.id, "denied", is_error=True)])

    assert claude.log("result")[0]["isError"] is True


async def test_the_next_prompt_goes_to_the_same_process_alone(tmp_path: Path, rig: Rig) -> None:
    """What it knows already is not said again."""
    claude = FakeClaude(tmp_path, {"text": "one"}, {"text": "two"})
    registry = registry_of(rig, claude)
    first = await ask(registry, "first")
    await ask(registry, [user("first"), first.done, user([TextBlock(text="second"), IMAGE])])

    assert len(claude.log("start")) == 1
    assert [block["type"] for block in claude.log("user")[1]["content"]] == ["text", "image"]
    assert claude.log("user")[1]["content"][0]["text"] == "second"


@pytest.mark.parametrize(
    "history",
    [
        [user("other"), assistant("one"), user("second")],  # another branch
        [user("first"), assistant("one, redacted"), user("second")],
        [user("first"), assistant("one"), user("x"), assistant("by another model"), user("second")],
        [user("second")],  # a compaction
    ],
)
async def test_a_process_that_knows_another_conversation_is_replaced(tmp_path: Path, rig: Rig, history: list[Message]) -> None:
    """The session is the truth, not what a process remembers."""
    claude = FakeClaude(tmp_path, {"text": "one"}, {"text": "two"})
    registry = registry_of(rig, claude)
    await ask(registry, "first")
    outcome = await ask(registry, history)

    assert outcome.text == "two"
    assert len(claude.log("start")) == 2
    (*_, last) = claude.log("user")
    assert last["content"][-1] == {"type": "text", "text": "second"}
    await gone(claude, claude.log("start")[0]["pid"])


async def test_a_fresh_process_reads_the_whole_conversation(tmp_path: Path, rig: Rig) -> None:
    """After a restart of the host, or with a session that another model began, also in the middle of a round of tools."""
    claude = FakeClaude(tmp_path, {"text": "so"})
    history: list[Message] = [user("look"), assistant("I do", tool_call("1", command="ls")), result("1", "a.txt", is_error=True)]
    await ask(registry_of(rig, claude), history)

    (told,) = claude.log("user")
    before, goes_on = (block["text"] for block in told["content"])
    for piece in ("[user]\nlook", "[assistant]\nI do", '[assistant calls bash]\n{"command":"ls"}', "[result of bash, an error]\na.txt"):
        assert piece in before
    assert goes_on == "(please go on)"


async def test_a_message_in_the_middle_of_a_round_is_not_lost(tmp_path: Path, rig: Rig) -> None:
    """What a person says while tools run reaches the model, in a fresh process."""
    claude = FakeClaude(tmp_path, {"calls": [{"name": "bash"}]}, {"text": "ok"})
    registry = registry_of(rig, claude)
    first = await ask(registry, "go")
    (block,) = first.done.content
    assert isinstance(block, ToolCall)
    await ask(registry, [user("go"), first.done, result(block.id), user("no, stop")])

    assert claude.log("user")[-1]["content"][-1]["text"] == "no, stop"


async def test_it_gets_an_environment_of_its_own(tmp_path: Path, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of what it may know, the configured key, and nothing else of the host's; command lines can be read by everybody."""
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-hosts-own")
    monkeypatch.setenv("LC_TIME", "C")
    claude = FakeClaude(tmp_path, {"text": "x"})
    await ask(registry_of(rig, claude, api_key="sk-ant-test-key", base_url="http://127.0.0.1:1"), "hi", system_prompt="Be kind.")

    (start,) = claude.log("start")
    environment = start["environment"]
    assert environment["ANTHROPIC_API_KEY"] == "sk-ant-test-key"
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert environment["LC_TIME"] == "C"
    assert environment["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert not {"TELEGRAM_BOT_TOKEN", "PYTEST_CURRENT_TEST"} & set(environment)
    assert start["system_prompt"] == "Be kind."
    assert not any("sk-ant" in argument or "Be kind" in argument for argument in start["argv"])
    assert claude.log("tools")[0]["tools"] == ["mcp__pumice__bash"]


async def test_the_token_of_a_login_goes_under_its_own_name(tmp_path: Path, rig: Rig) -> None:
    """It is no key of the API."""
    claude = FakeClaude(tmp_path, {"text": "x"})
    await ask(registry_of(rig, claude, api_key="sk-ant-oat01-token"), "hi")

    environment = claude.log("start")[0]["environment"]
    assert environment["CLAUDE_CODE_OAUTH_TOKEN"] == "sk-ant-oat01-token"
    assert "ANTHROPIC_API_KEY" not in environment


@pytest.mark.parametrize(
    ("model", "level", "flags"),
    [
        ("claude-sonnet-5-5", "high", ["--thinking", "adaptive", "--thinking-display", "summarized", "--effort", "high"]),
        ("claude-sonnet-4-5", "low", ["--max-thinking-tokens", "2048"]),
        ("claude-opus-5", "off", ["--thinking", "disabled"]),
        ("claude-opus-5-5", "off", []),
    ],
)
async def test_thinking_is_asked_for_in_the_programs_words(
    tmp_path: Path, rig: Rig, model: str, level: ThinkingLevel, flags: list[str]
) -> None:
    """As the API takes it for that model."""
    claude = FakeClaude(tmp_path, {"text": "x"})
    await call(registry_of(rig, claude), f"claude/{model}", thinking=level)

    argv = claude.log("start")[0]["argv"]
    assert argv[argv.index("--no-session-persistence") + 1 :] == flags
    assert argv[argv.index("--model") + 1] == model


async def test_no_more_processes_live_than_allowed(tmp_path: Path, rig: Rig) -> None:
    """The one that has been idle longest makes room; each holds 200 MB."""
    claude = FakeClaude(tmp_path, *[{"text": "x"}] * 6)
    registry = registry_of(rig, claude)
    for number in range(6):
        await ask(registry, "hi", session=f"s{number}")
    started = [entry["pid"] for entry in claude.log("start")]
    await gone(claude, *started[:2])

    assert claude.running() == set(started[2:])
    await registry.close()
    assert claude.running() == set()


async def test_more_calls_than_processes_wait_their_turn(tmp_path: Path, rig: Rig) -> None:
    """None is refused."""
    claude = FakeClaude(tmp_path, *[{"text": "x"}] * 6)
    registry = registry_of(rig, claude)
    outcomes = await asyncio.gather(*(ask(registry, "hi", session=f"s{number}") for number in range(6)))

    assert [outcome.text for outcome in outcomes] == ["x"] * 6


async def test_an_idle_process_ends_after_a_while(tmp_path: Path, rig: Rig) -> None:
    """A chat that rests costs no memory."""
    claude = FakeClaude(tmp_path, {"text": "x"})
    await ask(registry_of(rig, claude), "hi")
    (pid,) = claude.running()
    await rig.clock.advance(301)

    await gone(claude, pid)


async def test_without_a_session_nothing_lives_on(tmp_path: Path, rig: Rig) -> None:
    """A summary is asked once."""
    claude = FakeClaude(tmp_path, {"text": "x"})
    await ask(registry_of(rig, claude), "hi", session="")

    await gone(claude, claude.log("start")[0]["pid"])


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_giving_up_ends_the_process_at_once(tmp_path: Path, rig: Rig, how: str) -> None:
    """``/stop`` must stop the meter too; the next call starts afresh."""
    claude = FakeClaude(tmp_path, {"text": "an answer that does not end", "fault": "stall"}, {"text": "next"})
    registry = registry_of(rig, claude)
    heard = asyncio.Event()

    async def listen() -> None:
        request = ModelRequest(system_prompt="", messages=[user("hi")], session_id="s")
        async with aclosing(registry.provider("claude").stream(registry.resolve(SONNET), request)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    heard.set()
                    if how == "close":
                        return

    task = asyncio.create_task(listen())
    await heard.wait()
    if how == "cancel":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        await task
    await gone(claude, claude.log("start")[0]["pid"])

    assert (await ask(registry, "again")).text == "next"


@pytest.mark.parametrize(
    ("step", "kind", "words"),
    [
        ({"fault": "api", "status": 401, "error": "authentication_failed", "message": "Invalid API key"}, "auth", "Invalid API key"),
        ({"fault": "api", "status": 429, "error": "rate_limit", "message": "slow down"}, "rate_limit", "slow down"),
        ({"fault": "api", "status": 529, "error": "overloaded", "message": "Overloaded"}, "overloaded", "Overloaded"),
        ({"fault": "api", "status": None, "error": "billing_error", "message": "no credit"}, "billing", "no credit"),
        ({"fault": "api", "status": 400, "error": "invalid_request", "message": "prompt is too long"}, "overflow", "too long"),
        ({"fault": "api", "status": 500, "error": "server_error", "message": "oops"}, "server", "oops"),
        ({"text": "half", "fault": "exit"}, "server", "the process had an accident"),
        ({"text": "half", "fault": "stall"}, "network", "said nothing for 0.3 s"),
        ({"text": "x", "fault": "old"}, "invalid", "version 2.0.14; version 2.1.248 is needed"),
        ({"text": "x", "stop": "refusal"}, "refused", "refused"),
    ],
)
async def test_what_goes_wrong_is_a_failure_of_its_kind(tmp_path: Path, rig: Rig, step: dict[str, Any], kind: str, words: str) -> None:
    """The process does not live on, and the next call works."""
    claude = FakeClaude(tmp_path, step)
    registry = registry_of(rig, claude, limits=StreamLimits(idle_s=0.3))
    outcome = await ask(registry, "hi")

    assert outcome.failed.kind == kind
    assert words in outcome.error
    assert outcome.is_well_formed()
    await gone(claude, claude.log("start")[0]["pid"])
    claude.script({"text": "well again"})
    assert (await ask(registry, "hi")).text == "well again"


async def test_a_cut_answer_is_a_length_stop_and_the_process_ends(tmp_path: Path, rig: Rig) -> None:
    """It would go on by itself, and run what was cut."""
    claude = FakeClaude(tmp_path, {"text": "a", "calls": [{"name": "bash"}], "stop": "max_tokens"})
    outcome = await ask(registry_of(rig, claude), "hi")

    assert outcome.done.stop_reason == "length"
    await gone(claude, claude.log("start")[0]["pid"])


async def test_a_pause_of_the_model_is_no_end(tmp_path: Path, rig: Rig) -> None:
    """Both parts are one answer, and both were paid."""
    claude = FakeClaude(tmp_path, {"text": "first, ", "fault": "pause"}, {"text": "then"})
    outcome = await ask(registry_of(rig, claude), "hi")

    assert outcome.text == "first, then"
    assert (outcome.done.usage.input, outcome.done.usage.output) == (20, 10)


async def test_a_program_that_is_not_there_says_what_to_do(rig: Rig, tmp_path: Path) -> None:
    """Or that cannot be run."""
    missing = rig.registry(ProviderConfig(name="claude", kind="claude-code", command=str(tmp_path / "nothing")))
    broken = tmp_path / "claude"
    broken.write_text("#!/nowhere/at/all\n")
    broken.chmod(0o755)
    unusable = rig.registry(ProviderConfig(name="claude", kind="claude-code", command=str(broken)))

    assert "providers.claude.command" in (await ask(missing, "hi")).error
    assert "cannot be started" in (await ask(unusable, "hi")).error


async def test_a_process_that_died_meanwhile_is_replaced(tmp_path: Path, rig: Rig) -> None:
    """Nobody notices but the meter."""
    claude = FakeClaude(tmp_path, {"text": "one"}, {"text": "two"})
    registry = registry_of(rig, claude)
    first = await ask(registry, "first")
    (pid,) = claude.running()
    os.kill(pid, 9)
    await gone(claude, pid)
    answer: AssistantMessage = first.done
    second = await ask(registry, [user("first"), answer, user("second")])

    assert second.text == "two"
