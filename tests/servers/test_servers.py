"""The loopback servers refuse what the real services refuse, as the official clients see it."""

from typing import Any

import anthropic
import openai
import pytest

from tests.servers.anthropic import AnthropicServer
from tests.servers.openai import OpenAIServer
from tests.servers.script import Call, Failure, Reply

USER = {"role": "user", "content": "hi"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "bash", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
}
BMP = {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "Qk0="}}
BROKEN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Qk0="}}


def client(server: AnthropicServer) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key=server.api_key, base_url=server.url, max_retries=0)


async def test_the_official_anthropic_client_reads_an_answer() -> None:
    """Its own helper assembles the message."""
    reply = Reply(thinking="Hm.", text="Hello, world.", calls=(Call(name="bash", arguments={"command": "ls"}, id="toolu_9"),))
    async with (
        AnthropicServer([reply]) as server,
        client(server) as sdk,
        sdk.messages.stream(model="claude-sonnet-5-5", max_tokens=100, messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        message = await stream.get_final_message()

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.stop_reason == "tool_use"
    assert message.usage.output_tokens == 5


async def test_the_official_openai_client_reads_an_answer() -> None:
    """Its own helper assembles the message."""
    async with (
        OpenAIServer([Reply(text="Hello.", calls=(Call(name="bash", arguments={"command": "ls"}),))]) as server,
        openai.AsyncOpenAI(api_key=server.api_key, base_url=f"{server.url}/v1", max_retries=0) as sdk,
        sdk.chat.completions.stream(model="gpt-5.4", messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        completion = await stream.get_final_completion()

    message = completion.choices[0].message
    assert message.content == "Hello."
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == '{"command": "ls"}'


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "at least one message is required"),
        ([{"role": "assistant", "content": "a"}, USER], 'first message must use the "user" role'),
        ([USER, USER], "roles must alternate"),
        ([USER, {"role": "assistant", "content": "a"}], "does not support assistant message prefill"),
        ([USER, USE, USER], "`tool_use` ids were found without `tool_result` blocks immediately after: t1"),
        ([USER, {"role": "assistant", "content": "a"}, RESULT], "unexpected `tool_use_id` found in `tool_result` blocks: t1"),
        ([USER, USE, {"role": "user", "content": [*RESULT["content"], *RESULT["content"]]}], "must have a single result"),
        ([USER, USE, RESULT, USE, RESULT], "`tool_use` ids must be unique"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "text content blocks must be non-empty"),
        ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "must contain non-whitespace text"),
        ([{"role": "user", "content": []}], "must have non-empty content"),
        ([{"role": "user", "content": [BMP]}], "media_type: Input should be"),
        ([{"role": "user", "content": [BROKEN]}], "Could not process image"),
        ([{"role": "user", "content": [{"type": "text", "text": "x", "extra": 1}]}], "Extra inputs are not permitted"),
    ],
)
async def test_an_illegal_anthropic_transcript_is_refused_in_the_real_words(messages: list[Any], words: str) -> None:
    """So that a test of ours fails where the service would."""
    async with AnthropicServer() as server, client(server) as sdk:
        with pytest.raises(anthropic.BadRequestError, match=words):
            await sdk.messages.create(model="claude-sonnet-5-5", max_tokens=10, messages=messages, stream=True)
        server.refusals.clear()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 999_999}, "maximum allowed number of output tokens"),
        ({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}, "should match pattern"),
        ({"tools": [{"name": "a", "input_schema": {"type": "string"}}]}, "Input should be 'object'"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "not supported for this model"),
        ({"extra_body": {"temprature": 1}}, "temprature: Extra inputs are not permitted"),
    ],
)
async def test_illegal_anthropic_options_are_refused(options: dict[str, Any], words: str) -> None:
    """Unknown fields too."""
    arguments: dict[str, Any] = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [USER], "stream": True, **options}
    async with AnthropicServer() as server, client(server) as sdk:
        with pytest.raises(anthropic.BadRequestError, match=words):
            await sdk.messages.create(**arguments)
        server.refusals.clear()


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "empty array"),
        ([USER, CALL, USER], "must be followed by tool messages"),
        ([USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}], "must be a response to a preceeding message"),
        ([USER, {"role": "assistant", "content": None}], "expected a string"),
        ([USER, {"role": "robot", "content": "x"}], "Supported values"),
    ],
)
async def test_an_illegal_openai_transcript_is_refused_in_the_real_words(messages: list[Any], words: str) -> None:
    """So that a test of ours fails where the service would."""
    async with OpenAIServer() as server, openai.AsyncOpenAI(api_key=server.api_key, base_url=f"{server.url}/v1", max_retries=0) as sdk:
        with pytest.raises(openai.BadRequestError, match=words):
            await sdk.chat.completions.create(model="gpt-5.4", messages=messages, stream=True)
        server.refusals.clear()


async def test_a_wrong_key_is_refused() -> None:
    """With the service's status."""
    async with AnthropicServer() as server, anthropic.AsyncAnthropic(api_key="wrong", base_url=server.url, max_retries=0) as sdk:
        with pytest.raises(anthropic.AuthenticationError):
            await sdk.messages.create(model="claude-sonnet-5-5", max_tokens=10, messages=[{"role": "user", "content": "hi"}])
        server.refusals.clear()


async def test_unused_and_unexpected_steps_fail_the_test() -> None:
    """A script is a promise in both directions."""
    server = AnthropicServer([Failure(status=529, type="overloaded_error")])
    with pytest.raises(AssertionError, match="nobody asked for"):
        server.check()
    async with server, client(server) as sdk:
        for _ in range(2):
            with pytest.raises(anthropic.APIStatusError):
                await sdk.messages.create(model="claude-sonnet-5-5", max_tokens=10, messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(AssertionError, match="beyond the script"):
            server.check()
        server.unexpected = 0
