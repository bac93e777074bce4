"""Telegram calls the host."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from bot.clock import SystemClock
from channels.telegram import TelegramChannel, TelegramOptions, WebhookAddress
from tests.channels.telegram.rig import CHAT, PACE, Sink, running
from tests.servers.serving import serve
from tests.servers.telegram import Fault, TelegramServer

ADDRESS = WebhookAddress("https://bot.example/telegram/webhook", "secret-0123456789")


@asynccontextmanager
async def called(telegram: TelegramServer, sink: Sink) -> AsyncIterator[tuple[TelegramChannel, str]]:
    """A channel in webhook mode behind an address of its own."""
    options = TelegramOptions(telegram.token, telegram.url, 0, PACE, ADDRESS)
    channel = TelegramChannel(options, clock=SystemClock(), random=Random(7))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        answer = await channel.webhook(await request.body(), request.headers)
        await Response(answer.body, answer.status)(scope, receive, send)

    async with serve(app) as url, running(channel, sink):
        telegram.webhook_target = url
        yield channel, url


async def working(channel: TelegramChannel) -> None:
    async with asyncio.timeout(10):
        while not channel.health().working:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0.005)


async def test_updates_are_taken_as_telegram_calls(telegram: TelegramServer, sink: Sink) -> None:
    """The webhook is set with its secret, and health says that it works."""
    async with called(telegram, sink) as (channel, _):
        await working(channel)
        telegram.say(CHAT, "hello")
        (message,) = await sink.received(1)

        assert message.text == "hello"
        assert (telegram.world.webhook, telegram.world.webhook_secret) == (ADDRESS.url, ADDRESS.secret)
        assert channel.health().last_event_at is not None
        assert telegram.called("getUpdates") == []


async def test_what_cannot_be_stored_is_called_again(telegram: TelegramServer, sink: Sink) -> None:
    """Telegram keeps it."""
    async with called(telegram, sink) as (channel, _):
        await working(channel)
        sink.broken = OSError("disk full")
        telegram.say(CHAT, "hello")
        await telegram.until(lambda: 503 in telegram.webhook_answers)
        sink.broken = None
        (message,) = await sink.received(1)
        await telegram.until(lambda: not telegram.waiting)

    assert message.text == "hello"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, "{}", 401),
        ({"X-Telegram-Bot-Api-Secret-Token": "wrong"}, "{}", 401),
        ({"X-Telegram-Bot-Api-Secret-Token": "\xff"}, "{}", 401),
        ({"X-Telegram-Bot-Api-Secret-Token": ADDRESS.secret}, "no json", 400),
        ({"X-Telegram-Bot-Api-Secret-Token": ADDRESS.secret}, "[]", 400),
        ({"X-Telegram-Bot-Api-Secret-Token": ADDRESS.secret}, json.dumps({"update_id": 1, "message": {"odd": 1}}), 200),
    ],
)
async def test_only_telegram_is_heard(telegram: TelegramServer, sink: Sink, headers: Mapping[str, str], body: str, status: int) -> None:
    """Whoever does not know the secret could forge updates of owners. An update that nobody can read must not come for ever."""
    async with called(telegram, sink) as (channel, url), httpx2.AsyncClient() as client:
        await working(channel)
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        answer = await client.post(url, content=body, headers=raw)

    assert answer.status_code == status
    assert sink.messages == []


async def test_a_webhook_that_cannot_be_set_is_said_and_tried_again(
    telegram: TelegramServer, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    """Health tells why."""
    telegram.fail("setWebhook", Fault(code=400, description="Bad Request: bad webhook: Failed to resolve host"))
    async with called(telegram, sink) as (channel, _):
        await working(channel)

    assert len(telegram.called("setWebhook")) == 2
    assert "resolve host" in caplog.records[0].facts["detail"]  # type: ignore[attr-defined]
