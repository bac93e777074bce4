"""What goes to the Responses API and what comes of its answer."""

import json

import pytest

from features.contracts.messages import Message, TextBlock, ThinkingBlock, ToolCall
from features.contracts.models import Model
from features.models import ProviderConfig
from tests.features.models.rig import BASH, IMAGE, Rig, assistant, call, result, tool_call, user
from tests.servers.openai import OpenAIServer
from tests.servers.responses import ResponsesServer
from tests.servers.responses_rules import SEAL
from tests.servers.script import Call, Failure, Reply

GPT = "openai/gpt-5.4"
MODEL = Model(provider="openai", id="gpt-5.4", api="openai-responses")


async def test_reasoning_text_and_calls_arrive_as_blocks(rig: Rig) -> None:
    """The parts of a summary are paragraphs of one thought; a call's id holds its item's too, as other programs write it."""
    reply = Reply(thinking="First.\n\nThen.", text="Two things.", calls=(Call(name="bash", arguments={"command": "ls"}, id="call_a"),))
    async with ResponsesServer([reply]) as server:
        outcome = await call(rig.openai(server), GPT, tools=[BASH], thinking="high")

    thought, text, called = outcome.done.content
    assert isinstance(thought, ThinkingBlock)
    assert isinstance(text, TextBlock)
    assert isinstance(called, ToolCall)
    assert (thought.thinking, text.text) == ("First.\n\nThen.", "Two things.")
    assert json.loads(thought.thinking_signature or "")["encrypted_content"].startswith(SEAL)
    assert json.loads(text.text_signature or "")["phase"] == "final_answer"
    assert called.id.startswith("call_a|fc_")
    assert called.arguments == {"command": "ls"}
    assert (outcome.done.stop_reason, outcome.done.api) == ("toolUse", "openai-responses")


async def test_its_own_reasoning_goes_back_with_what_followed_it(rig: Rig) -> None:
    """As it came, and the service can tell that it was not changed; nothing else keeps the name of an item that was not stored."""
    call_step = Reply(thinking="Hm.", calls=(Call(name="bash", arguments={"command": "ls"}),))
    async with ResponsesServer([call_step, Reply(text="done")]) as server:
        registry = rig.openai(server)
        first = await call(registry, GPT, "go", tools=[BASH], thinking="low")
        (_, called) = first.done.content
        assert isinstance(called, ToolCall)
        await call(registry, GPT, [user("go"), first.done, result(called.id, blocks=[TextBlock(text="see"), IMAGE])], tools=[BASH])

    _, reasoning, function, output = server.request["input"]
    assert reasoning["encrypted_content"] == SEAL + "Hm."
    assert reasoning["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert "id" not in function
    assert output["call_id"] == function["call_id"] == called.id.partition("|")[0]
    assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]


async def test_an_answers_phase_goes_back_with_it(rig: Rig) -> None:
    """Newer models tell a comment on the way from the answer by it."""
    async with ResponsesServer([Reply(text="so"), Reply(text="x")]) as server:
        registry = rig.openai(server)
        first = await call(registry, GPT, "a")
        await call(registry, GPT, [user("a"), first.done, user("b")])

    assert server.request["input"][1]["phase"] == "final_answer"


@pytest.mark.parametrize(
    "thought",
    [
        ThinkingBlock(thinking="Hm.", thinking_signature="sig-of-another"),
        ThinkingBlock(thinking="Hm.", thinking_signature='{"type": "reasoning", "id": "rs_1"}'),
        ThinkingBlock(thinking="Hm.", thinking_signature="[1]"),
        ThinkingBlock(thinking="Hm."),
    ],
)
async def test_reasoning_that_it_cannot_read_stays_at_home(rig: Rig, thought: ThinkingBlock) -> None:
    """One that it cannot decrypt would fail every later call."""
    async with ResponsesServer([Reply(text="x")]) as server:
        await call(rig.openai(server), GPT, [user("a"), assistant(thought, "so", model=MODEL), user("b")])

    assert [item.get("role") for item in server.request["input"]] == ["user", "assistant", "user"]


async def test_nothing_is_stored_and_the_session_is_the_cache_key(rig: Rig) -> None:
    """The system prompt has a field of its own."""
    async with ResponsesServer([Reply(text="x", input_tokens=1000, cache_read=3000, output_tokens=50)]) as server:
        outcome = await call(rig.openai(server), GPT, session_id="session-7", thinking="medium")

    body = server.request
    assert (body["store"], body["prompt_cache_key"], body["instructions"]) == (False, "session-7", "Be brief.")
    assert body["reasoning"] == {"effort": "medium", "summary": "auto"}
    assert (outcome.done.usage.input, outcome.done.usage.cache_read, outcome.done.usage.total_tokens) == (1000, 3000, 4050)


async def test_a_model_that_does_not_reason_is_asked_the_plain_way(rig: Rig) -> None:
    """It would gain nothing, and gateways know that API best."""
    async with OpenAIServer([Reply(text="x")]) as server:
        outcome = await call(rig.openai(server), "openai/gpt-4.1")

    assert outcome.done.api == "openai-completions"


async def test_a_gateway_without_this_api_is_asked_the_other_way_from_then_on(rig: Rig) -> None:
    """It answers with 404 to the address itself; the message says which API was really used."""
    async with OpenAIServer([Reply(text="one"), Reply(text="two")]) as server:
        registry = rig.openai(server)
        first, second = await call(registry, GPT, thinking="high"), await call(registry, GPT)

    assert (first.text, second.text) == ("one", "two")
    assert first.done.api == "openai-completions"
    assert server.requests[0].body["reasoning_effort"] == "high"


async def test_an_unknown_model_is_not_mistaken_for_a_missing_api(rig: Rig) -> None:
    """Its 404 has an error code; asking elsewhere would hide what is wrong."""
    gone = Failure(status=404, type="model_not_found", message="The model `gpt-5.4` does not exist")
    async with ResponsesServer([gone]) as server:
        outcome = await call(rig.openai(server), GPT)

    assert outcome.failed.kind == "invalid"
    assert "does not exist" in outcome.error


async def test_an_answer_that_failed_at_the_service_is_a_failure_of_its_kind(rig: Rig) -> None:
    """The stream itself was whole."""
    event = {"type": "response.failed", "response": {"status": "failed", "error": {"code": "context_length_exceeded", "message": "long"}}}
    stream = Failure(status=200, body=f"data: {json.dumps(event)}\n\n", headers={"content-type": "text/event-stream"})
    async with ResponsesServer([stream]) as server:
        outcome = await call(rig.openai(server), GPT)

    assert outcome.failed.kind == "overflow"


async def test_ids_of_other_services_fit(rig: Rig) -> None:
    """However long; and calls of the same id are told apart."""
    history: list[Message] = [user("go")]
    for _ in range(2):
        history += [assistant(tool_call("toolu_" + "x" * 90)), result("toolu_" + "x" * 90)]
    async with ResponsesServer([Reply(text="x")]) as server:
        config = ProviderConfig(name="openai", kind="openai", api_key=server.api_key, base_url=f"{server.url}/v1")
        await call(rig.registry(config), GPT, history, tools=[BASH])

    ids = [item["call_id"] for item in server.request["input"] if item.get("type") == "function_call"]
    assert len(set(ids)) == 2
