"""Long answers and many calls."""

import asyncio

import pytest

from tests.features.models.rig import Rig, call
from tests.servers.anthropic import AnthropicServer
from tests.servers.openai import OpenAIServer
from tests.servers.script import Reply


@pytest.mark.parametrize("kind", [AnthropicServer, OpenAIServer])
async def test_a_long_answer_in_small_pieces_is_whole(rig: Rig, kind: type[AnthropicServer] | type[OpenAIServer]) -> None:
    """100 KB in 6,250 deltas; each is handed on once and the text is joined once."""
    text = "".join(f"{number:07d} " for number in range(12_500))
    async with kind([Reply(text=text, chunk=16)]) as server:
        registry = rig.anthropic(server) if isinstance(server, AnthropicServer) else rig.openai(server)
        outcome = await call(registry, "anthropic/claude-sonnet-5-5" if kind is AnthropicServer else "openai/gpt-5.4")

    assert outcome.text == text
    assert outcome.kinds.count("text_delta") == 6_250


@pytest.mark.parametrize("kind", [AnthropicServer, OpenAIServer])
async def test_a_server_that_answers_by_function_takes_many_calls(rig: Rig, kind: type[AnthropicServer] | type[OpenAIServer]) -> None:
    """As the load tests use it."""
    async with kind(respond=lambda body: Reply(text=str(len(body["messages"])))) as server:
        registry = rig.anthropic(server) if isinstance(server, AnthropicServer) else rig.openai(server)
        reference = "anthropic/claude-sonnet-5-5" if kind is AnthropicServer else "openai/gpt-5.4"
        outcomes = await asyncio.gather(*(call(registry, reference, system_prompt="") for _ in range(20)))

    assert {outcome.text for outcome in outcomes} == {"1"}
