"""Reading a stream of server-sent events: only the data of each, as bytes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

__all__ = ["StreamLimits", "StreamStalled", "event_data"]


class StreamLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds: to connect, for the first event (a model may think before it speaks), and between events."""

    connect_s: float = 10.0
    first_event_s: float = 600.0
    idle_s: float = 120.0


class StreamStalled(Exception):
    """The service kept the connection and said nothing."""


async def event_data(chunks: AsyncIterator[bytes], limits: StreamLimits) -> AsyncGenerator[bytes, None]:
    """The data of each event, in order, in time linear in the bytes read.

    Raises:
        StreamStalled: nothing came for too long.
    """
    unfinished: list[bytes] = []  # pieces of a line that has not ended
    data: list[bytes] = []
    wait = limits.first_event_s
    while (chunk := await _next(chunks, wait)) is not None:
        wait = limits.idle_s
        head, newline, rest = chunk.partition(b"\n")
        if not newline:
            unfinished.append(chunk)
            continue
        unfinished.append(head)
        lines = [b"".join(unfinished), *rest.split(b"\n")]
        unfinished = [lines.pop()]
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                if data:
                    yield b"\n".join(data)
                    data = []
            elif line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
    if data:  # the last event ended without its blank line
        yield b"\n".join(data)


async def _next(chunks: AsyncIterator[bytes], wait: float) -> bytes | None:
    try:
        async with asyncio.timeout(wait):
            return await anext(chunks, None)
    except TimeoutError:
        raise StreamStalled(f"the service sent nothing for {wait:g} s") from None
