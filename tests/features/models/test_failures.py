"""Every way in which a service may fail, through the real SDKs."""

import asyncio
import sys
from contextlib import aclosing
from datetime import timedelta
from email.utils import format_datetime

import pytest

from features.contracts.messages import TextBlock, ToolCall
from features.contracts.models import ModelRequest
from features.contracts.stream import FailureKind, TextDelta
from features.models import ProviderConfig
from features.models.failures import is_overflow, kind_of
from features.models.sse import StreamLimits
from tests.features.models.rig import BASH, IMAGE, SERVERS, Kind, Rig, assistant, call, tool_call, user
from tests.servers.anthropic import AnthropicServer
from tests.servers.google import GoogleServer
from tests.servers.openai import OpenAIServer
from tests.servers.responses import ResponsesServer
from tests.servers.script import Call, Failure, Reply, Step

ANTHROPIC, OPENAI = "anthropic/claude-sonnet-5-5", "openai/gpt-4.1"
every = pytest.mark.parametrize("kind", SERVERS)
streaming_calls = pytest.mark.parametrize("kind", [AnthropicServer, OpenAIServer, ResponsesServer])
"""The services that send a call's arguments in pieces; the others send them whole or not at all."""


@every
@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure(status=401, type="authentication_error", message="invalid x-api-key"), "auth"),
        (Failure(status=403, type="permission_error", message="no access"), "auth"),
        (Failure(status=402, type="billing_error", message="pay first"), "billing"),
        (Failure(status=400, type="invalid_request_error", message="Your credit balance is too low to access the API"), "billing"),
        (Failure(status=429, type="insufficient_quota", message="You exceeded your current quota"), "billing"),
        (Failure(status=429, type="rate_limit_error", message="slow down"), "rate_limit"),
        (Failure(status=529, type="overloaded_error", message="Overloaded"), "overloaded"),
        (Failure(status=503, type="", message="", body=""), "overloaded"),
        (Failure(status=500, type="api_error", message="Internal server error"), "server"),
        (Failure(status=502, body="<html>Bad Gateway</html>"), "server"),
        (Failure(status=404, type="not_found_error", message="model: nope"), "invalid"),
        (Failure(status=400, type="invalid_request_error", message="tools.0: bad"), "invalid"),
        (Failure(status=400, type="invalid_request_error", message="prompt is too long: 213462 tokens > 200000 maximum"), "overflow"),
        (Failure(status=413, type="request_too_large", message="Request exceeds the maximum size"), "overflow"),
        (Failure(status=400, type="invalid_request_error", message="", body=""), "overflow"),
    ],
)
async def test_an_error_status_becomes_a_failure_of_its_kind(rig: Rig, kind: Kind, failure: Failure, expected: FailureKind) -> None:
    """The loop decides by the kind: retry, compact, or tell the person; and the SDK must not retry in secret."""
    async with kind([failure]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference)

    assert outcome.failed.kind == expected
    assert outcome.is_well_formed()
    assert str(failure.status) in outcome.error
    assert failure.message in outcome.error
    assert len(server.requests) == 1


@every
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
    ],
)
async def test_the_wait_that_the_service_asks_for_is_handed_on(
    rig: Rig, kind: Kind, headers: dict[str, str], seconds: float | None
) -> None:
    """Uncapped and in seconds; the loop caps it."""
    async with kind([Failure(status=429, type="rate_limit_error", message="slow down", headers=headers)]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference)

    assert outcome.failed.retry_after_s == seconds


@every
async def test_a_wait_given_as_a_date_is_counted_from_now(rig: Rig, kind: Kind) -> None:
    """The header may hold an HTTP date."""
    at = format_datetime(rig.clock.now() + timedelta(seconds=12), usegmt=True)
    async with kind([Failure(status=429, type="rate_limit_error", message="slow down", headers={"retry-after": at})]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference)

    assert outcome.failed.retry_after_s == 12.0


@every
@pytest.mark.parametrize("fault", ["half", "no_end"])
async def test_an_answer_without_its_end_is_a_network_failure_with_what_came(rig: Rig, kind: Kind, fault: str) -> None:
    """The SDKs report a clean end without the terminal event as success, which would pass half an answer for a whole one."""
    async with kind([Reply(text="the first half", fault=fault)]) as server:  # type: ignore[arg-type]
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference)

    assert outcome.failed.kind == "network"
    assert outcome.failed.message.content == [TextBlock(text="the first half")]
    assert outcome.failed.message.stop_reason == "error"


@streaming_calls
@pytest.mark.parametrize("fault", ["half", "no_end"])
async def test_a_tool_call_cut_in_the_middle_never_looks_whole(rig: Rig, kind: Kind, fault: str) -> None:
    """Half of an argument object must not be repaired into a call."""
    reply = Reply(calls=(Call(name="bash", arguments='{"command": "rm -rf /tmp/x'),), fault=fault)  # type: ignore[arg-type]
    async with kind([reply]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, tools=[BASH])

    (block,) = outcome.failed.message.content
    assert isinstance(block, ToolCall)
    assert block.arguments == {}
    assert block.invalid_arguments == '{"command": "rm -rf /tmp/x'


@every
@pytest.mark.parametrize(
    ("error_type", "expected"),
    [("overloaded_error", "overloaded"), ("rate_limit_error", "rate_limit"), ("api_error", "server"), ("server_error", "server")],
)
async def test_an_error_event_in_mid_stream_keeps_the_partial_answer(rig: Rig, kind: Kind, error_type: str, expected: str) -> None:
    """The status was 200 long before; the SDK's error says 200 too."""
    async with kind([Reply(text="so far", fault="error", error_type=error_type)]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference)

    assert outcome.failed.kind == expected
    assert outcome.failed.message.content == [TextBlock(text="so far")]


@streaming_calls
async def test_invalid_tool_json_is_kept_as_it_came(rig: Rig, kind: Kind) -> None:
    """The model is told what it wrote; nothing runs."""
    async with kind([Reply(calls=(Call(name="bash", arguments='{"command": ls}'), Call(name="bash", arguments="[1]")))]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, tools=[BASH])

    first, second = outcome.done.content
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.arguments, first.invalid_arguments) == ({}, '{"command": ls}')
    assert (second.arguments, second.invalid_arguments) == ({}, "[1]")
    assert outcome.done.stop_reason == "toolUse"


@every
async def test_an_empty_message_is_a_whole_answer_without_content(rig: Rig, kind: Kind) -> None:
    """What to do about silence is the loop's affair."""
    async with kind([Reply()]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference)

    assert outcome.done.content == []
    assert outcome.done.stop_reason == "stop"


async def test_a_refusal_is_a_failure_with_the_reason(rig: Rig) -> None:
    """It is not worth a retry, and what was said before it does not stand."""
    async with AnthropicServer([Reply(text="Well, ", stop="refusal", refusal="This looks dangerous.")]) as server:
        outcome = await call(rig.anthropic(server), ANTHROPIC)
    assert outcome.failed.kind == "refused"
    assert "This looks dangerous." in outcome.error

    spoken = Reply(refusal="I can't help with that.")
    for kind, stop in ((OpenAIServer, "content_filter"), (ResponsesServer, "content_filter"), (GoogleServer, "SAFETY")):
        async with kind([spoken, Reply(text="x", stop=stop)]) as server:
            registry, reference = rig.connect(server)
            first, filtered = await call(registry, reference), await call(registry, reference)
        assert (first.failed.kind, filtered.failed.kind) == ("refused", "refused")
        assert "I can't help with that." in first.error


@every
async def test_the_output_limit_is_a_length_stop_and_never_tool_use(rig: Rig, kind: Kind) -> None:
    """A call of such a message may be cut and must not run."""
    stops = {AnthropicServer: "max_tokens", OpenAIServer: "length", ResponsesServer: "max_output_tokens", GoogleServer: "MAX_TOKENS"}
    arguments = '{"command": "l' if kind is not GoogleServer else "{}"
    async with kind([Reply(text="a", calls=(Call(name="bash", arguments=arguments),), stop=stops[kind])]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, tools=[BASH])

    assert outcome.done.stop_reason == "length"


@every
async def test_a_silent_stream_is_given_up(rig: Rig, kind: Kind) -> None:
    """A connection can stay open for ever without a word."""
    async with kind([Reply(text="wait for it", fault="stall")]) as server:
        registry, reference = rig.connect(server, StreamLimits(idle_s=0.2))
        outcome = await asyncio.wait_for(call(registry, reference), 10)

        assert outcome.failed.kind == "network"
        assert "0.2 s" in outcome.error
        assert outcome.failed.message.content == [TextBlock(text="wait for it")]
        await asyncio.wait_for(server.gone.wait(), 5)


@every
async def test_a_service_that_never_answers_is_given_up(rig: Rig, kind: Kind) -> None:
    """Before the first byte the wait is another, longer one."""
    async with kind([Reply(text="late", delay_s=30)]) as server:
        registry, reference = rig.connect(server, StreamLimits(first_event_s=0.2))
        outcome = await asyncio.wait_for(call(registry, reference), 10)

    assert outcome.failed.kind == "network"


@every
async def test_a_service_that_is_not_there_is_a_network_failure(rig: Rig, kind: Kind) -> None:
    """Worth a retry."""
    async with kind() as server:
        registry, reference = rig.connect(server)
    outcome = await call(registry, reference)

    assert outcome.failed.kind == "network"
    assert "ConnectError" in outcome.error


@every
@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_giving_up_ends_the_request_at_once(rig: Rig, kind: Kind, how: str) -> None:
    """``/stop`` must stop the meter too."""
    async with kind([Reply(text="an answer that does not end", fault="stall"), Reply(text="next")]) as server:
        registry, reference = rig.connect(server)
        heard = asyncio.Event()

        async def listen() -> None:
            request = ModelRequest(system_prompt="", messages=[user("hi")])
            model = registry.resolve(reference)
            async with aclosing(registry.provider(model.provider).stream(model, request)) as stream:
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
        await asyncio.wait_for(server.gone.wait(), 5)

        assert (await call(registry, reference)).text == "next"  # the slot and the client are free again


@pytest.mark.parametrize("kind", ["anthropic", "openai", "google"])
async def test_a_missing_key_names_the_setting(rig: Rig, kind: str) -> None:
    """Nothing is sent, and nothing is read from the environment behind the configuration's back."""
    registry = rig.registry(ProviderConfig(name="mine", kind=kind, base_url="http://127.0.0.1:9"))
    outcome = await call(registry, "mine/some-model")

    assert outcome.failed.kind == "auth"
    assert "providers.mine.api_key" in outcome.error
    assert outcome.is_well_formed()


async def test_a_page_instead_of_a_stream_points_at_the_address(rig: Rig) -> None:
    """A wrong base_url usually reaches some web server."""
    async with OpenAIServer([Failure(status=200, body="<html>hello</html>", headers={"content-type": "text/html"})]) as server:
        outcome = await call(rig.openai(server), OPENAI)

    assert outcome.failed.kind == "invalid"
    assert "providers.openai.base_url" in outcome.error


@every
async def test_garbage_in_the_stream_is_a_failure_of_the_service(rig: Rig, kind: Kind) -> None:
    """Not an exception."""
    body = "data: {broken\n\n"
    async with kind([Failure(status=200, body=body, headers={"content-type": "text/event-stream"})]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference)

    assert outcome.failed.kind == "server"


@every
async def test_an_image_that_the_service_cannot_take_is_left_out_from_then_on(rig: Rig, kind: Kind) -> None:
    """Otherwise one bad picture would fail every later call of its session."""
    refusal = Failure(status=400, type="invalid_request_error", message="messages.0.content.1: Could not process image")
    script: list[Step] = [refusal, Reply(text="no picture"), Reply(text="still none")]
    async with kind(script) as server:
        registry, reference = rig.connect(server)
        first = await call(registry, reference, [user([TextBlock(text="look"), IMAGE])], session_id="s")
        second = await call(registry, reference, [user([TextBlock(text="look"), IMAGE]), user("again")], session_id="s")

        assert (first.text, second.text) == ("no picture", "still none")
        assert "image omitted" in str(server.requests[1].body)
        assert IMAGE.data not in str(server.requests[2].body)


@every
async def test_an_image_is_left_out_only_once_per_call(rig: Rig, kind: Kind) -> None:
    """A service that always complains must not be asked for ever."""
    refusal = Failure(status=400, type="invalid_request_error", message="Could not process image")
    async with kind([refusal, refusal]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, [user([TextBlock(text="look"), IMAGE])])

    assert outcome.failed.kind == "invalid"


@pytest.mark.parametrize(
    ("kind", "module"), [("anthropic", "anthropic"), ("openai", "openai"), ("google", "google.genai"), ("claude-code", "claude_agent_sdk")]
)
async def test_a_package_that_is_not_installed_names_the_extra(rig: Rig, kind: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each SDK is an extra of its own."""
    monkeypatch.setitem(sys.modules, module, None)  # Python's own way to say that there is no such module
    monkeypatch.delitem(sys.modules, "features.models.claude_code_process", raising=False)  # it may stand on the SDK already
    monkeypatch.delattr("features.models.claude_code_process", raising=False)
    outcome = await call(rig.registry(ProviderConfig(name="mine", kind=kind, api_key="k")), "mine/some-model")

    assert outcome.failed.kind == "invalid"
    assert f"pumice[{kind}]" in outcome.error


async def test_a_defect_is_logged_with_the_id_that_the_person_sees(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """A provider never raises, whatever it is given."""
    broken = assistant(tool_call("a", loop=object()))
    async with AnthropicServer() as server:
        outcome = await call(rig.anthropic(server), ANTHROPIC, [user("x"), broken, user("y")])

    assert outcome.failed.kind == "unknown"
    assert "error id-1" in outcome.error
    assert outcome.is_well_formed()
    assert caplog.records[-1].exc_info is not None


async def test_no_more_calls_go_on_than_allowed(rig: Rig) -> None:
    """The others wait for their turn; none is lost."""
    async with AnthropicServer(respond=lambda body: Reply(text="ok", delay_s=0.05)) as server:
        config = ProviderConfig(name="anthropic", kind="anthropic", api_key=server.api_key, base_url=server.url)
        registry = rig.registry(config, max_concurrency=2)
        outcomes = await asyncio.gather(*(call(registry, ANTHROPIC) for _ in range(6)))

    assert [outcome.text for outcome in outcomes] == ["ok"] * 6
    assert server.peak == 2


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "Your input exceeds the context window of this model",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "Please reduce the length of the messages or completion",
        "This endpoint's maximum context length is 1000 tokens. However, you requested about 2000 tokens",
        "This model's maximum context length is 131,072 tokens",
        "the request exceeds the available context size, try increasing it",
        "tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 1 (requested: 2)",
        "Prompt contains 5 tokens, too large for model with 4 maximum context length",
        "Requested token count exceeds the model's maximum context length of 131072 tokens",
        "Input length (265330) exceeds model's maximum context length (262144).",
        "exceeds the maximum allowed input length of 1,000 tokens",
        "input (9000 tokens) is longer than the model's context length (8192 tokens)",
        "prompt too long; exceeded max context length",
        "prompt token count of 9 exceeds the limit of 8",
        "Prompt has 9,000 tokens, but the configured context size is 8,192 tokens",
        "400 status code (no body)",
        "413 (no body)",
        "Request exceeds the maximum size",
    ],
)
def test_a_text_about_a_too_long_conversation_is_known(text: str) -> None:
    """Each of these is what some service says."""
    assert is_overflow(text)


@pytest.mark.parametrize(
    "text",
    [
        "ThrottlingException: Too many tokens, please wait before trying again.",
        "Throttling error: Too many tokens",
        "Service unavailable: token limit exceeded",
        "429 rate limit: token limit exceeded per minute",
        "Too many requests: too many tokens",
        "429 status code (no body)",
        "Invalid API key",
    ],
)
def test_a_text_about_a_busy_service_is_not_taken_for_a_long_conversation(text: str) -> None:
    """A compaction would not help, and loses words."""
    assert not is_overflow(text)


def test_a_429_is_never_an_overflow() -> None:
    """Whatever its words."""
    assert kind_of(429, (), "429 prompt is too long") == "rate_limit"
