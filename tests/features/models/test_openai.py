"""What goes to a Chat Completions API and what comes of its answer."""

from typing import Any

import pytest

from features.contracts.messages import Message, TextBlock, ThinkingBlock, ToolCall
from features.contracts.models import Model
from features.models import ModelOverride, ProviderConfig
from tests.features.models.rig import BASH, IMAGE, Rig, assistant, call, result, tool_call, user
from tests.servers.openai import OpenAIServer
from tests.servers.script import Call, Reply

GPT = "openai/gpt-5.4"
MODEL = Model(provider="openai", id="gpt-5.4", api="openai-completions")


async def test_text_and_several_calls_arrive_as_blocks(rig: Rig) -> None:
    """Calls are told apart by their index."""
    calls = (Call(name="bash", arguments={"command": "ls"}, id="a"), Call(name="bash", arguments={"command": "pwd"}, id="b"))
    async with OpenAIServer([Reply(text="Two things.", calls=calls)]) as server:
        outcome = await call(rig.openai(server), GPT, tools=[BASH])

    assert outcome.done.content == [
        TextBlock(text="Two things."),
        ToolCall(id="a", name="bash", arguments={"command": "ls"}),
        ToolCall(id="b", name="bash", arguments={"command": "pwd"}),
    ]
    assert outcome.done.stop_reason == "toolUse"


async def test_usage_takes_the_cache_out_of_the_input(rig: Rig) -> None:
    """The service counts cached tokens as part of the prompt."""
    async with OpenAIServer([Reply(text="x", input_tokens=1000, cache_read=3000, output_tokens=50)]) as server:
        outcome = await call(rig.openai(server), "openai/gpt-4.1")

    usage = outcome.done.usage
    assert (usage.input, usage.output, usage.cache_read, usage.total_tokens) == (1000, 50, 3000, 4050)
    assert usage.cost.total == pytest.approx((1000 * 2 + 50 * 8 + 3000 * 0.5) / 1e6)


async def test_the_session_is_the_cache_key(rig: Rig) -> None:
    """So that a conversation finds its own prefix again; nothing is stored at the service."""
    async with OpenAIServer([Reply(text="x")]) as server:
        await call(rig.openai(server), GPT, session_id="session-7")

    assert server.request["prompt_cache_key"] == "session-7"
    assert server.request["store"] is False


@pytest.mark.parametrize(
    ("model", "level", "effort"),
    [
        ("gpt-5.4", "off", None),
        ("gpt-5", "off", "minimal"),
        ("gpt-5", "minimal", "minimal"),
        ("gpt-5.4", "minimal", "low"),
        ("gpt-5.4", "medium", "medium"),
        ("gpt-6.1-sol", "xhigh", "xhigh"),
        ("gpt-5", "xhigh", "high"),
        ("o3", "high", "high"),
        ("gpt-4.1", "high", None),
    ],
)
async def test_thinking_is_asked_for_in_the_models_words(rig: Rig, model: str, level: Any, effort: str | None) -> None:
    """A word that a model does not know is refused."""
    async with OpenAIServer([Reply(text="x")]) as server:
        await call(rig.openai(server), f"openai/{model}", thinking=level)

    assert server.request.get("reasoning_effort") == effort


async def test_images_of_tool_results_follow_in_a_user_message(rig: Rig) -> None:
    """A tool message holds only text; and its blank is never blank."""
    history: list[Message] = [
        user([TextBlock(text="look"), IMAGE]),
        assistant(tool_call("a"), tool_call("b")),
        result("a", blocks=[IMAGE]),
        result("b", " "),
    ]
    async with OpenAIServer([Reply(text="x")]) as server:
        await call(rig.openai(server), GPT, history, tools=[BASH])

    messages = server.request["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [message["content"] for message in messages[3:5]] == ["(see the image below)", "(no output)"]
    assert [part["type"] for part in messages[5]["content"]] == ["text", "image_url"]


async def test_its_own_thinking_stays_at_home(rig: Rig) -> None:
    """This API has no field to take it back; long foreign ids are cut to its limit."""
    history: list[Message] = [
        user("go"),
        assistant(ThinkingBlock(thinking="Hm."), tool_call("call_" + "x" * 60 + "|fc_1"), model=MODEL),
        result("call_" + "x" * 60 + "|fc_1"),
    ]
    async with OpenAIServer([Reply(text="x")]) as server:
        await call(rig.openai(server), GPT, history, tools=[BASH])

    _, _, message, answer = server.request["messages"]
    assert message["content"] is None
    assert message["tool_calls"][0]["id"] == answer["tool_call_id"] == ("call_" + "x" * 60)[:40]


async def test_a_compatible_server_needs_no_key_and_gets_no_foreign_fields(rig: Rig) -> None:
    """Strict servers refuse what they do not know; a guessed output limit could exceed a small window."""
    async with OpenAIServer([Reply(thinking="Hm.", text="x", calls=(Call(name="bash"),), stop="stop")], compatible=True) as server:
        config = ProviderConfig(name="ollama", kind="openai-compatible", base_url=f"{server.url}/v1")
        outcome = await call(rig.registry(config), "ollama/qwen3", tools=[BASH], session_id="s", thinking="high")

    assert set(server.request) == {"model", "stream", "stream_options", "tools", "messages"}
    assert outcome.thinking == "Hm."
    assert outcome.done.stop_reason == "toolUse"  # such servers say stop although they call a tool
    assert outcome.done.usage.cost.total == 0


async def test_a_configured_model_of_a_compatible_server_is_taken_at_its_word(rig: Rig) -> None:
    """Its limit, its images and its reasoning are what the operator wrote."""
    model = ModelOverride(id="m", max_output=4096, context_window=32768, input=("text", "image"), reasoning=True)
    async with OpenAIServer([Reply(text="x")], compatible=True) as server:
        config = ProviderConfig(name="vllm", kind="openai-compatible", base_url=f"{server.url}/v1", models=(model,))
        await call(rig.registry(config), "vllm/m", [user([TextBlock(text="look"), IMAGE])], thinking="xhigh")

    body = server.request
    assert (body["max_tokens"], body["reasoning_effort"]) == (4096, "high")
    assert [part["type"] for part in body["messages"][1]["content"]] == ["text", "image_url"]


async def test_a_model_that_cannot_see_is_told_that_there_was_an_image(rig: Rig) -> None:
    """Several in a row are said once."""
    async with OpenAIServer([Reply(text="x")], compatible=True) as server:
        config = ProviderConfig(name="ollama", kind="openai-compatible", base_url=f"{server.url}/v1")
        await call(rig.registry(config), "ollama/blind", [user([TextBlock(text="look"), IMAGE, IMAGE])])

    assert server.request["messages"][1]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "text", "text": "(image omitted: model does not support images)"},
    ]


async def test_a_window_filled_to_the_brim_is_an_overflow(rig: Rig) -> None:
    """Some servers answer nothing and call it a length stop."""
    model = ModelOverride(id="m", context_window=1000)
    async with OpenAIServer([Reply(stop="length", input_tokens=995, output_tokens=0)], compatible=True) as server:
        config = ProviderConfig(name="x", kind="openai-compatible", base_url=f"{server.url}/v1", models=(model,))
        outcome = await call(rig.registry(config), "x/m")

    assert outcome.failed.kind == "overflow"
