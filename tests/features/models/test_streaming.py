"""Long answers and many calls."""

import asyncio

import pytest

from tests.features.models.rig import SERVERS, Kind, Rig, call
from tests.servers.script import Reply

every = pytest.mark.parametrize("kind", SERVERS)


@every
async def test_a_long_answer_in_small_pieces_is_whole(rig: Rig, kind: Kind) -> None:
    """100 KB in 6,250 deltas; each is handed on once and the text is joined once."""
    text = "".join(f"{number:07d} " for number in range(12_500))
    async with kind([Reply(text=text, chunk=16)]) as server:
        outcome = await call(*rig.connect(server))

    assert outcome.text == text
    assert outcome.kinds.count("text_delta") == 6_250


@every
async def test_a_server_that_answers_by_function_takes_many_calls(rig: Rig, kind: Kind) -> None:
    """As the load tests use it."""
    async with kind(respond=lambda body: Reply(text=f"{len(body)} fields")) as server:
        registry, reference = rig.connect(server)
        outcomes = await asyncio.gather(*(call(registry, reference, system_prompt="") for _ in range(20)))

    assert len({outcome.text for outcome in outcomes}) == 1
