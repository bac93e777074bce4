"""The connections to the Bot API."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest
from telegram.error import BadRequest, TelegramError
from telegram.request import RequestData

from channels.telegram.lanes import Flooded, LanedRequest, tls_context


class Answering:
    """A bare HTTP server that counts its connections; ``hold`` keeps answers back, ``answer`` is what it says."""

    def __init__(self) -> None:
        self.connections = 0
        self.hold = asyncio.Event()
        self.answer = b'HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n{"ok":true,"result":true}'
        self.asked = asyncio.Semaphore(0)
        self.under_test: LanedRequest
        self._going: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._going.add(cast("asyncio.Task[None]", asyncio.current_task()))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.asked.release()
                await self.hold.wait()
                writer.write(self.answer)
                if not self.answer:
                    break
        writer.close()

    @asynccontextmanager
    async def lanes(self, number: int) -> AsyncIterator[Callable[[], Awaitable[object]]]:
        """Gives a call through so many lanes; the lanes are ``under_test`` meanwhile."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with server, LanedRequest(tls_context(), lanes=number, read_timeout=5) as self.under_test:
            yield lambda: self.under_test.post(address, RequestData())
        await asyncio.gather(*self._going)


@pytest.fixture
async def answering() -> Answering:
    server = Answering()
    server.hold.set()
    return server


async def test_a_cancelled_call_leaves_its_connection_to_the_next(answering: Answering) -> None:
    """Quick answers cancel their typing indicators; pools have run dry over that."""
    async with answering.lanes(1) as ask:
        for _ in range(5):
            answering.hold.clear()
            calls = [asyncio.ensure_future(ask()) for _ in range(4)]
            for _ in calls:
                await answering.asked.acquire()
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            answering.hold.set()

            assert await asyncio.gather(*(ask() for _ in range(4))) == [True] * 4
            for _ in calls:
                await answering.asked.acquire()

        assert answering.connections == 4


async def test_connections_are_bounded_and_wait_their_turn(answering: Answering) -> None:
    """200 chats at once must neither open 200 connections nor time out waiting for one."""
    async with answering.lanes(2) as ask:
        answers = await asyncio.gather(*(ask() for _ in range(200)))

        assert answers == [True] * 200
        assert answering.connections <= 8


async def test_a_lane_that_fails_again_and_again_is_replaced(answering: Answering) -> None:
    """A pool can keep a dead connection for ever."""
    async with answering.lanes(1) as ask:
        await ask()
        (before,) = answering.under_test._lanes
        answering.answer, good = b"", answering.answer
        for _ in range(3):
            with pytest.raises(TelegramError):
                await ask()

        answering.answer = good
        assert await ask() is True
        assert answering.under_test._lanes != [before]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (b"429 Too Many Requests", b'{"ok":false,"parameters":{"retry_after":7}}', Flooded),
        (b"429 Too Many Requests", b"<html>", Flooded),
        (b"413 Request Entity Too Large", b"<html>", BadRequest),
    ],
)
async def test_refusals_keep_what_they_say(status: bytes, body: bytes, expected: type[TelegramError], answering: Answering) -> None:
    """Also where a proxy in between answers in HTML."""
    answering.answer = b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)
    async with answering.lanes(1) as ask:
        with pytest.raises(expected) as raised:
            await ask()

    if isinstance(raised.value, Flooded):
        assert raised.value.seconds == (7 if b"retry" in body else 5)
