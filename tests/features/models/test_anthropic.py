"""What goes to Anthropic's Messages API and what comes of its answer."""

from typing import Any

import pytest

from features.contracts.messages import Message, TextBlock, ThinkingBlock, ToolCall
from features.contracts.models import Model
from features.models import ModelOverride
from tests.features.models.rig import BASH, IMAGE, READ, Rig, assistant, call, result, tool_call, user
from tests.servers.anthropic import SIGNATURE, AnthropicServer
from tests.servers.script import Call, Reply

SONNET = "anthropic/claude-sonnet-5-5"
MODEL = Model(provider="anthropic", id="claude-sonnet-5-5", api="anthropic-messages")


async def test_thinking_text_and_calls_arrive_as_blocks_in_order(rig: Rig) -> None:
    """Each block has its start, its pieces and its end."""
    reply = Reply(
        thinking="Let me look at the folder.", text="I will list it.", calls=(Call(name="bash", arguments={"command": "ls"}, id="toolu_1"),)
    )
    async with AnthropicServer([reply]) as server:
        outcome = await call(rig.anthropic(server), SONNET, tools=[BASH], thinking="high")

    assert outcome.done.content == [
        ThinkingBlock(thinking="Let me look at the folder.", thinking_signature=SIGNATURE),
        TextBlock(text="I will list it."),
        ToolCall(id="toolu_1", name="bash", arguments={"command": "ls"}),
    ]
    assert outcome.done.stop_reason == "toolUse"
    assert list(dict.fromkeys(outcome.kinds)) == [
        "start", "thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end",
        "toolcall_start", "toolcall_delta", "toolcall_end", "done",
    ]  # fmt: skip
    assert (outcome.thinking, outcome.text) == ("Let me look at the folder.", "I will list it.")


async def test_usage_and_cost_are_counted(rig: Rig) -> None:
    """Cached tokens are apart from the input, as they have another price."""
    async with AnthropicServer([Reply(text="x", input_tokens=1000, output_tokens=200, cache_read=5000, cache_write=300)]) as server:
        outcome = await call(rig.anthropic(server), SONNET)

    usage = outcome.done.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total_tokens) == (1000, 200, 5000, 300, 6500)
    assert usage.cost.input == pytest.approx(1000 * 2 / 1e6)
    assert usage.cost.total == pytest.approx((1000 * 2 + 200 * 10 + 5000 * 0.1 + 300 * 2.5) / 1e6)


async def test_the_cost_follows_the_step_that_the_input_reaches(rig: Rig) -> None:
    """Long inputs of some models cost more for all their tokens."""
    async with AnthropicServer([Reply(text="x", input_tokens=1000, cache_read=250_000, output_tokens=0)]) as server:
        outcome = await call(rig.anthropic(server), "anthropic/claude-sonnet-4-5")

    assert outcome.done.usage.cost.input == pytest.approx(1000 * 6 / 1e6)


async def test_configured_prices_replace_the_listed_ones(rig: Rig) -> None:
    """A gateway may charge something else."""
    mine = ModelOverride(id="claude-sonnet-5-5", prices={"input": 100.0})
    async with AnthropicServer([Reply(text="x", input_tokens=1000, output_tokens=100)]) as server:
        outcome = await call(rig.anthropic(server, mine), SONNET)

    assert outcome.done.usage.cost.input == pytest.approx(0.1)


async def test_what_stays_the_same_is_marked_for_the_cache(rig: Rig) -> None:
    """System prompt, tools and the last thing the person's side said."""
    history: list[Message] = [user("one"), assistant("two"), user("three")]
    async with AnthropicServer([Reply(text="x")]) as server:
        await call(rig.anthropic(server), SONNET, history, tools=[BASH, READ], session_id="s")
        body = server.request

    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert ["cache_control" in message["content"][-1] for message in body["messages"]] == [False, False, True]


@pytest.mark.parametrize(
    ("model", "level", "expected"),
    [
        ("claude-sonnet-5-5", "off", {"thinking": {"type": "between_tools"}}),
        ("claude-opus-5-5", "off", {}),
        ("claude-fable-5-2", "off", {}),
        ("claude-opus-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-4-6", "off", {}),
        ("claude-haiku-4-5-20251001", "off", {}),
        ("claude-sonnet-5-5", "minimal", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}),
        ("claude-sonnet-5-5", "xhigh", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}}),
        ("claude-opus-4-6", "xhigh", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}}),
        ("claude-sonnet-4-6", "xhigh", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}}),
        ("claude-haiku-4-5-20251001", "minimal", {"max_tokens": 33_024, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ("claude-haiku-4-5", "low", {"max_tokens": 34_048, "thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-3-7-sonnet-latest", "medium", {"max_tokens": 40_192, "thinking": {"type": "enabled", "budget_tokens": 8192}}),
        ("claude-opus-4-1", "high", {"max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 16_384}}),
        ("claude-3-5-haiku-latest", "high", {}),
    ],
)
async def test_thinking_is_asked_for_as_the_model_takes_it(rig: Rig, model: str, level: Any, expected: dict[str, Any]) -> None:
    """Effort words since 4.6, a budget of tokens before; the wrong one is refused."""
    async with AnthropicServer([Reply(text="x")]) as server:
        await call(rig.anthropic(server), f"anthropic/{model}", thinking=level)
        body = server.request

    assert {key: body[key] for key in ("thinking", "output_config") if key in body} == {
        k: v for k, v in expected.items() if k != "max_tokens"
    }
    if "max_tokens" in expected:
        assert body["max_tokens"] == expected["max_tokens"]


async def test_a_small_output_limit_leaves_room_for_an_answer(rig: Rig) -> None:
    """A budget that would fill the limit is cut down, or thinking left off."""
    small = ModelOverride(id="claude-haiku-4-5", max_output=4096)
    tiny = ModelOverride(id="claude-haiku-4-5-20251001", max_output=1500)
    async with AnthropicServer([Reply(text="x"), Reply(text="x")]) as server:
        registry = rig.anthropic(server, small, tiny)
        await call(registry, "anthropic/claude-haiku-4-5", thinking="high")
        await call(registry, "anthropic/claude-haiku-4-5-20251001", thinking="high")

    first, second = (recorded.body for recorded in server.requests)
    assert (first["max_tokens"], first["thinking"]["budget_tokens"]) == (4096, 3072)
    assert (second["max_tokens"], "thinking" in second) == (1500, False)


async def test_a_tool_round_that_began_without_thinking_ends_without_it(rig: Rig) -> None:
    """With a budget the API refuses a round whose first message does not begin with thinking."""
    history: list[Message] = [user("go"), assistant(tool_call("toolu_1", command="ls")), result("toolu_1")]
    async with AnthropicServer([Reply(text="x"), Reply(text="x")]) as server:
        registry = rig.anthropic(server)
        await call(registry, "anthropic/claude-haiku-4-5", history, tools=[BASH], thinking="low")
        await call(registry, "anthropic/claude-haiku-4-5", [*history, assistant("done"), user("more")], tools=[BASH], thinking="low")

    assert ["thinking" in recorded.body for recorded in server.requests] == [False, True]


async def test_thinking_goes_back_signed_to_its_own_model(rig: Rig) -> None:
    """Byte for byte; the API checks the signature."""
    thought = ThinkingBlock(thinking="Hm.", thinking_signature=SIGNATURE)
    hidden = ThinkingBlock(thinking="", thinking_signature="sig-hidden", redacted=True)
    history: list[Message] = [user("go"), assistant(thought, hidden, tool_call("toolu_1"), model=MODEL), result("toolu_1")]
    async with AnthropicServer([Reply(text="x")]) as server:
        await call(rig.anthropic(server), SONNET, history, tools=[BASH], thinking="low")

    assert server.request["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "sig-hidden"},
    ]


async def test_images_go_along_in_prompts_and_results(rig: Rig) -> None:
    """An error result may hold only text."""
    history: list[Message] = [
        user([TextBlock(text="look"), IMAGE]),
        assistant(tool_call("a"), tool_call("b")),
        result("a", blocks=[TextBlock(text="shot"), IMAGE]),
        result("b", blocks=[TextBlock(text="broken"), IMAGE], is_error=True),
    ]
    async with AnthropicServer([Reply(text="x")]) as server:
        await call(rig.anthropic(server), SONNET, history, tools=[BASH])

    first, _, results = server.request["messages"]
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    assert [block["type"] for block in results["content"][0]["content"]] == ["text", "image"]
    assert [block["type"] for block in results["content"][1]["content"]] == ["text"]


async def test_a_person_speaking_after_results_shares_their_message(rig: Rig) -> None:
    """Results must come right after the call, and roles take turns."""
    history: list[Message] = [user("go"), assistant(tool_call("a")), result("a"), user("hurry up")]
    async with AnthropicServer([Reply(text="x")]) as server:
        await call(rig.anthropic(server), SONNET, history, tools=[BASH])

    assert [block["type"] for block in server.request["messages"][-1]["content"]] == ["tool_result", "text"]


async def test_a_full_window_at_the_end_of_an_answer_is_an_overflow(rig: Rig) -> None:
    """The conversation has to be compacted before it can go on."""
    async with AnthropicServer([Reply(text="cut", stop="model_context_window_exceeded")]) as server:
        outcome = await call(rig.anthropic(server), SONNET)

    assert outcome.failed.kind == "overflow"


async def test_an_unknown_stop_reason_is_said_plainly(rig: Rig) -> None:
    """Rather than taken for an answer."""
    async with AnthropicServer([Reply(text="x", stop="moon_phase")]) as server:
        outcome = await call(rig.anthropic(server), SONNET)

    assert outcome.failed.kind == "unknown"
    assert "moon_phase" in outcome.error


async def test_a_blank_system_prompt_and_odd_arguments_are_legal(rig: Rig) -> None:
    """Empty text blocks, split characters and huge numbers are refused or break the JSON."""
    odd = tool_call("a", big=2**80, text="half \ud800 char")
    history: list[Message] = [user("go \udc00"), assistant(odd), result("a", "  \n ")]
    async with AnthropicServer([Reply(text="x")]) as server:
        await call(rig.anthropic(server), SONNET, history, tools=[BASH], system_prompt="  ")
        body = server.request

    assert "system" not in body
    assert body["messages"][1]["content"][0]["input"] == {"big": 2**80, "text": "half  char"}
    assert body["messages"][2]["content"][0]["content"] == [{"type": "text", "text": "(no output)"}]
