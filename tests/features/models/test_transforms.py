"""A session that other models began, as each service gets it.

The rows are pi's, with what it does wrong put right: calls are closed at the end too, and results of a dropped message go with it. Each
row is sent to each loopback server, whose rules refuse what the real service would.
"""

import json
from typing import Any

import pytest

from features.contracts.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    UserBlock,
)
from features.contracts.models import Model
from features.models import ModelOverride, ModelRegistry
from tests.features.models.rig import BASH, IMAGE, SERVERS, Kind, Rig, assistant, call, result, tool_call, user
from tests.servers.anthropic import AnthropicServer
from tests.servers.google import GoogleServer
from tests.servers.openai import OpenAIServer
from tests.servers.responses import ResponsesServer
from tests.servers.script import ModelServer, Reply

every = pytest.mark.parametrize("kind", SERVERS)
FOREIGN = Model(provider="copilot", id="gpt-5", api="openai-responses")
U, V = user("first"), user("second")
A1, A12 = assistant(tool_call("1")), assistant(tool_call("1"), tool_call("2"))
NOTE = CustomMessage(custom_type="n", content="note", display=True, timestamp=0)
FAILED = assistant("f", tool_call("1"), stop_reason="error")
ABORTED = assistant("gone", stop_reason="aborted")


def told(server: ModelServer) -> str:
    """All that was sent of the conversation, in the service's own form."""
    body = server.request
    return json.dumps(body.get("messages") or body.get("input") or body.get("contents"), ensure_ascii=False)


def roles(server: ModelServer) -> str:
    """``U`` a person, ``A`` text of the model, ``C`` a call, ``R`` a result; in order, whatever the service calls them."""
    body = server.request
    found: list[str] = []
    for item in body.get("messages") or body.get("input") or body["contents"]:
        found += _of_item(item)
    return "".join(letter for at, letter in enumerate(found) if at == 0 or letter in "CR" or found[at - 1] != letter)


def _of_item(item: dict[str, Any]) -> list[str]:
    if item.get("role") == "system":
        return []
    if item.get("role") == "tool" or item.get("type") == "function_call_output":
        return ["R"]
    if item.get("type") == "function_call":
        return ["C"]
    mine = "A" if item["role"] in ("assistant", "model") else "U"
    parts = item.get("content") or item.get("parts") or []
    if isinstance(parts, str):
        parts = [{"text": parts}]
    letters = [_of_part(part, mine) for part in parts]
    return letters + ["C"] * len(item.get("tool_calls") or ())


def _of_part(part: dict[str, Any], mine: str) -> str:
    if part.get("type") == "tool_use" or "functionCall" in part:
        return "C"
    if part.get("type") == "tool_result" or "functionResponse" in part:
        return "R"
    return mine


async def send(rig: Rig, server: ModelServer, messages: list[Message]) -> None:
    registry, reference = rig.connect(server)
    outcome = await call(registry, reference, messages, tools=[BASH])
    assert outcome.text == "x"


@every
@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([U, A12, result("1"), V], "UCCRRU"),
        ([U, A1, assistant("so"), V], "UCRAU"),
        ([U, A1], "UCR"),
        ([U, FAILED, result("1"), V], "U"),
        ([U, ABORTED, V], "U"),
        ([U, A1, NOTE, result("1"), V], "UCRU"),
        ([U, A1, V, result("1")], "UCRU"),
        ([U, result("7"), assistant("so"), V], "UAU"),
        ([U, assistant(" "), V], "U"),
    ],
)
async def test_every_call_is_followed_by_its_result_and_nothing_failed_is_told(
    rig: Rig, kind: Kind, messages: list[Message], expected: str
) -> None:
    """One orphan makes every later request of the session fail."""
    async with kind([Reply(text="x")]) as server:
        await send(rig, server, messages)

    assert roles(server) == expected


@every
async def test_what_another_model_thought_is_text_and_its_signatures_stay_behind(rig: Rig, kind: Kind) -> None:
    """They are worthless here; an empty or hidden thought is nothing at all."""
    message = assistant(
        ThinkingBlock(thinking="Let me think", thinking_signature="sig-a"),
        ThinkingBlock(thinking="", thinking_signature="sig-b"),
        ThinkingBlock(thinking="hidden", thinking_signature="sig-c", redacted=True),
        TextBlock(text="so", text_signature="sig-d"),
        ToolCall(id="c|fc_1", name="bash", arguments={}, thought_signature="c2ln"),
        model=FOREIGN,
    )
    async with kind([Reply(text="x")]) as server:
        await send(rig, server, [U, message, result("c|fc_1")])

    text = told(server)
    assert "Let me think" in text
    assert not any(word in text for word in ("sig-", "c2ln", "hidden", "fc_1"))
    assert roles(server) == "UACR"


@every
async def test_its_own_thought_is_never_told_as_its_words(rig: Rig, kind: Kind) -> None:
    """Signed, it goes back as it is where the service has a place for it; the model must not learn to think aloud."""
    async with kind([Reply(thinking="Let me think.", text="so"), Reply(text="x")]) as server:
        registry, reference = rig.connect(server)
        first = await call(registry, reference, [U], thinking="high")
        await call(registry, reference, [U, first.done, V])

    spoken = [part for part in _assistant_parts(server) if part.get("type") in ("text", "output_text") or set(part) & {"text"}]
    assert not any("Let me think" in str(part.get("text")) for part in spoken if not part.get("thought"))


def _assistant_parts(server: ModelServer) -> list[dict[str, Any]]:
    body = server.request
    parts: list[dict[str, Any]] = []
    for item in body.get("messages") or body.get("input") or body["contents"]:
        if item.get("role") in ("assistant", "model"):
            content = item.get("content") or item.get("parts")
            parts += [{"text": content}] if isinstance(content, str) else content
    return parts


@every
@pytest.mark.parametrize("foreign", ["call_x|" + "A+/=" * 120, "x" * 200, "ü!", "", "a b.c"])
async def test_ids_of_other_services_are_made_to_fit(rig: Rig, kind: Kind, foreign: str) -> None:
    """Within the length and the letters that each takes, the result still with its call, also when the id comes twice."""
    round_of_tools: list[Message] = [assistant(tool_call(foreign), model=FOREIGN), result(foreign)]
    async with kind([Reply(text="x")]) as server:
        await send(rig, server, [U, *round_of_tools, *round_of_tools])

    assert roles(server) == "UCRCR"


@every
async def test_a_call_without_arguments_has_an_empty_object(rig: Rig, kind: Kind) -> None:
    """As its schema wants it, also where the model wrote something that is no JSON."""
    broken = ToolCall(id="1", name="bash", arguments={}, invalid_arguments="{oops")
    async with kind([Reply(text="x")]) as server:
        await send(rig, server, [U, assistant(broken), result("1", is_error=True)])

    assert "oops" not in told(server)


def blind(rig: Rig, server: ModelServer) -> tuple[ModelRegistry, str]:
    """A registry whose model of the server sees no images."""
    sees_not: dict[str, Any] = {"input": ("text",)}
    if isinstance(server, AnthropicServer):
        return rig.anthropic(server, ModelOverride(id="claude-blind", **sees_not)), "anthropic/claude-blind"
    if isinstance(server, GoogleServer):
        return rig.google(server, ModelOverride(id="gemini-3.8-blind", **sees_not)), "google/gemini-3.8-blind"
    assert isinstance(server, (OpenAIServer, ResponsesServer))
    name = "gpt-4.1" if isinstance(server, OpenAIServer) else "gpt-5.4"
    return rig.openai(server, ModelOverride(id=name, **sees_not)), f"openai/{name}"


@every
async def test_images_go_to_models_that_see_and_are_named_to_the_others(rig: Rig, kind: Kind) -> None:
    """Several in a row are one note."""
    seen: list[UserBlock] = [TextBlock(text="look"), IMAGE, IMAGE]
    history: list[Message] = [user(seen), A1, result("1", blocks=[IMAGE])]
    async with kind([Reply(text="x"), Reply(text="x")]) as server:
        await send(rig, server, history)
        assert told(server).count(IMAGE.data) == 3
        registry, reference = blind(rig, server)
        await call(registry, reference, history, tools=[BASH])

    assert IMAGE.data not in told(server)
    assert told(server).count("(image omitted: model does not support images)") == 1
    assert told(server).count("(tool image omitted: model does not support images)") == 1


@every
async def test_halves_of_characters_and_blank_results_do_no_harm(rig: Rig, kind: Kind) -> None:
    """No service can decode a lone surrogate; a blank result is refused by some for ever."""
    history: list[Message] = [
        user("a\ud83d\ude00b\ud800c"),
        assistant("d\udfffe", ToolCall(id="1", name="bash", arguments={"command": "\ud800ls", "k\udfff": ["\ud83d\ude00"]})),
        result("1", " \n"),
        assistant("\ud800"),
        user("\ud800"),
    ]
    async with kind([Reply(text="x")]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, history, system_prompt="be\ud800 kind", tools=[BASH])

    assert outcome.text == "x"
    text = told(server)
    assert "a😀bc" in text
    assert "(no output)" in text
    text.encode()


@every
async def test_the_answer_of_one_service_is_read_by_every_other(rig: Rig, kind: Kind) -> None:
    """A chat may change its model at any time, also between a call and its result."""
    answers: list[AssistantMessage] = []
    for other in SERVERS:
        reply = Reply(thinking="Hm.", text="I look.", calls=())
        async with other([reply]) as server:
            registry, reference = rig.connect(server)
            answers.append((await call(registry, reference, [U], thinking="high")).done)
    history: list[Message] = [U]
    for answer in answers:
        history += [answer, V]
    async with kind([Reply(text="x")]) as server:
        await send(rig, server, history)

    assert told(server).count("I look.") == len(SERVERS)
