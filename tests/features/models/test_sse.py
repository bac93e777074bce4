"""Reading server-sent events."""

from collections.abc import AsyncIterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from features.models.sse import StreamLimits, event_data

EVENTS = [b'{"a": 1}', b'{"b": "x\xc3\xbc"}', b"[DONE]", b"one\ntwo"]
WIRE = b': comment\nevent: x\ndata: {"a": 1}\n\ndata:{"b": "x\xc3\xbc"}\r\n\r\n\n\nid: 7\ndata: [DONE]\n\ndata: one\ndata: two\n\n'


async def read(chunks: list[bytes]) -> list[bytes]:
    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [data async for data in event_data(source(), StreamLimits())]


@given(st.lists(st.integers(0, len(WIRE)), max_size=12))
async def test_events_are_read_however_the_bytes_are_cut(cuts: list[int]) -> None:
    """The network cuts where it likes, also within a character."""
    bounds = [0, *sorted(cuts), len(WIRE)]

    assert await read([WIRE[a:b] for a, b in pairwise(bounds)]) == EVENTS


async def test_half_an_event_at_the_end_is_left_out() -> None:
    """A whole one without its blank line counts."""
    assert await read([b"data: 1\n\ndata: {half"]) == [b"1"]
    assert await read([b"data: 1\n\ndata: 2\n"]) == [b"1", b"2"]


async def test_a_long_line_in_small_pieces_is_joined_once() -> None:
    """A megabyte in pieces of a hundred bytes is quick; copied at each piece it would take minutes."""
    assert await read([b"data: ", *[b"x" * 100] * 10_000, b"\n\n"]) == [b"x" * 1_000_000]
