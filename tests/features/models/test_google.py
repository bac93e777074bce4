"""What goes to the Gemini API and what comes of its answer."""

import json
from typing import Any

import pytest

from features.contracts.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall
from features.contracts.models import Model, ThinkingLevel
from features.models import ProviderConfig
from tests.features.models.rig import BASH, IMAGE, Rig, assistant, call, result, tool_call, user
from tests.servers.google import SIGNATURE, GoogleServer
from tests.servers.script import Call, Failure, Reply

FLASH = "google/gemini-3.8-flash"
MODEL = Model(provider="google", id="gemini-3.8-flash", api="google-generative-ai")
MAGIC = "skip_thought_signature_validator"


def parts(server: GoogleServer) -> list[list[dict[str, Any]]]:
    return [content["parts"] for content in server.request["contents"]]


async def test_thoughts_text_and_calls_arrive_as_blocks(rig: Rig) -> None:
    """A call without an id gets one; its signature is kept."""
    calls = (Call(name="bash", arguments={"command": "ls"}), Call(name="bash", arguments={"command": "pwd"}, id="own"))
    async with GoogleServer([Reply(thinking="Hm.", text="Two things.", calls=calls)]) as server:
        outcome = await call(rig.google(server), FLASH, tools=[BASH], thinking="high")

    assert outcome.done.content == [
        ThinkingBlock(thinking="Hm."),
        TextBlock(text="Two things."),
        ToolCall(id="call_id-1", name="bash", arguments={"command": "ls"}, thought_signature=SIGNATURE),
        ToolCall(id="own", name="bash", arguments={"command": "pwd"}),
    ]
    assert outcome.done.stop_reason == "toolUse"


async def test_its_own_signatures_go_back_and_its_thoughts_do_not(rig: Rig) -> None:
    """The thought is in the signature; its summary told as text would teach the model to think aloud."""
    reply = Reply(thinking="Hm.", calls=(Call(name="bash", id="a"),))
    async with GoogleServer([reply, Reply(thinking="So.", text="done"), Reply(text="x")]) as server:
        registry = rig.google(server)
        first = await call(registry, FLASH, "go", tools=[BASH])
        history: list[Message] = [user("go"), first.done, result("a", is_error=True)]
        second = await call(registry, FLASH, history, tools=[BASH])
        assert parts(server)[1:] == [
            [{"functionCall": {"name": "bash", "args": {}}, "thoughtSignature": SIGNATURE}],
            [{"functionResponse": {"name": "bash", "response": {"error": "ok"}}}],
        ]
        await call(registry, FLASH, [*history, second.done, user("more")])

    assert second.done.content == [ThinkingBlock(thinking="So."), TextBlock(text="done", text_signature=SIGNATURE)]
    assert parts(server)[3] == [{"text": "done", "thoughtSignature": SIGNATURE}]


@pytest.mark.parametrize(
    ("model", "signature"), [("gemini-3.8-flash", MAGIC), ("gemini-3.1-pro-preview", MAGIC), ("gemini-2.5-flash", None)]
)
async def test_a_call_of_another_model_is_marked_where_the_model_wants_it(rig: Rig, model: str, signature: str | None) -> None:
    """Newer models refuse a call without a signature, and one that is foreign."""
    foreign = ToolCall(id="a", name="bash", arguments={}, thought_signature="c2ln")
    async with GoogleServer([Reply(text="x")]) as server:
        await call(rig.google(server), f"google/{model}", [user("go"), assistant(foreign), result("a")], tools=[BASH])

    assert parts(server)[1][0].get("thoughtSignature") == signature


async def test_a_signature_that_is_none_is_not_sent(rig: Rig) -> None:
    """An imported session may hold anything; the service refuses what it cannot decode."""
    broken = ToolCall(id="a", name="bash", arguments={}, thought_signature="no base64!")
    history: list[Message] = [user("go"), assistant(TextBlock(text="so", text_signature="xyz"), broken, model=MODEL), result("a")]
    async with GoogleServer([Reply(text="x")]) as server:
        await call(rig.google(server), FLASH, history, tools=[BASH])

    text, called = parts(server)[1]
    assert "thoughtSignature" not in text
    assert called["thoughtSignature"] == MAGIC


@pytest.mark.parametrize(
    ("model", "level", "config"),
    [
        ("gemini-2.5-pro", "off", None),
        ("gemini-2.5-pro", "minimal", {"thinkingBudget": 128, "includeThoughts": True}),
        ("gemini-2.5-pro", "xhigh", {"thinkingBudget": 32768, "includeThoughts": True}),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "high", {"thinkingBudget": 24576, "includeThoughts": True}),
        ("gemini-2.5-flash-lite", "minimal", {"thinkingBudget": 512, "includeThoughts": True}),
        ("gemini-3.1-pro-preview", "minimal", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("gemini-3.1-pro-preview", "medium", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-3.8-flash", "off", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.8-flash", "medium", {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
        ("gemini-2.0-flash", "high", None),
    ],
)
async def test_thinking_is_asked_for_in_the_models_words(rig: Rig, model: str, level: ThinkingLevel, config: dict[str, Any] | None) -> None:
    """A budget for the older, a level for the newer; some cannot stop thinking."""
    async with GoogleServer([Reply(text="x")]) as server:
        await call(rig.google(server), f"google/{model}", thinking=level)

    assert server.request["generationConfig"].get("thinkingConfig") == config


@pytest.mark.parametrize(("model", "turns"), [("gemini-3.8-flash", 3), ("gemini-2.5-flash", 4)])
async def test_images_of_tool_results_stand_where_the_model_reads_them(rig: Rig, model: str, turns: int) -> None:
    """In the result, or after it as a person's."""
    history: list[Message] = [user([TextBlock(text="look"), IMAGE]), assistant(tool_call("a")), result("a", blocks=[IMAGE])]
    async with GoogleServer([Reply(text="x")]) as server:
        await call(rig.google(server), f"google/{model}", history, tools=[BASH])

    assert len(parts(server)) == turns


async def test_an_image_of_a_kind_that_it_does_not_read_is_left_out(rig: Rig) -> None:
    """One animation must not silence the chat."""
    animation = ImageBlock(data="R0lGODlhAQABAAAAACw=", mime_type="image/gif")
    async with GoogleServer([Reply(text="no picture")]) as server:
        outcome = await call(rig.google(server), FLASH, [user([TextBlock(text="look"), animation])])
        assert server.refusals == ["Unsupported MIME type: image/gif"]
        server.refusals.clear()

    assert outcome.text == "no picture"
    assert "image omitted" in str(server.request)


async def test_cached_tokens_are_taken_out_of_the_input_and_thoughts_are_output(rig: Rig) -> None:
    """Twice counted would be twice paid."""
    async with GoogleServer([Reply(text="x", input_tokens=1000, cache_read=3000, output_tokens=50)]) as server:
        outcome = await call(rig.google(server), "google/gemini-2.5-flash")

    usage = outcome.done.usage
    assert (usage.input, usage.output, usage.cache_read, usage.total_tokens) == (1000, 50, 3000, 4050)
    assert usage.cost.total == pytest.approx((1000 * 0.3 + 50 * 2.5 + 3000 * 0.03) / 1e6)


def quota(name: str, *details: dict[str, Any]) -> Failure:
    limit = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}
    message = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": [limit, *details]}
    return Failure(status=429, body=json.dumps({"error": error}), headers={"content-type": "application/json"})


async def test_a_limit_by_the_minute_is_worth_waiting_for_and_one_by_the_day_is_not(rig: Rig) -> None:
    """The words are the same for both."""
    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
    script = [quota("GenerateRequestsPerMinutePerProject", wait), quota("GenerateRequestsPerDayPerProject")]
    async with GoogleServer(script) as server:
        registry = rig.google(server)
        minute, day = await call(registry, FLASH), await call(registry, FLASH)

    assert (minute.failed.kind, minute.failed.retry_after_s) == ("rate_limit", 34.07)
    assert day.failed.kind == "billing"


async def test_a_wrong_key_is_told_as_such(rig: Rig) -> None:
    """The service says 400 and explains in the details."""
    async with GoogleServer() as server:
        outcome = await call(rig.google(server, key="AIza-wrong"), FLASH)
        assert server.refusals
        server.refusals.clear()

    assert outcome.failed.kind == "auth"
    assert "API_KEY_INVALID" in outcome.error
    assert "AIza-wrong" not in outcome.error


async def test_a_call_that_the_service_could_not_read_is_worth_a_retry(rig: Rig) -> None:
    """The model wrote it badly this time."""
    async with GoogleServer([Reply(text="", stop="MALFORMED_FUNCTION_CALL")]) as server:
        outcome = await call(rig.google(server), FLASH)

    assert outcome.failed.kind == "server"


async def test_the_environment_decides_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK looks for keys and another product there; the configuration alone counts."""
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-of-the-environment")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    async with GoogleServer([Reply(text="x")]) as server:
        config = ProviderConfig(name="google", kind="google", api_key=server.api_key, base_url=f"{server.url}/v1/")
        outcome = await call(rig.registry(config), FLASH)

    assert outcome.text == "x"
