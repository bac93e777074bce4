"""The polling loop: what is acknowledged, and what happens when it goes wrong."""

import asyncio
import logging

import pytest

from channels.telegram import TelegramChannel
from tests.channels.telegram.rig import CHAT, PACE, Sink, channel_of, running
from tests.servers.telegram import Fault, TelegramServer


async def test_an_update_is_acknowledged_only_when_it_is_stored(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """A host that dies in between must be given it again."""
    sink.broken = OSError("disk full")
    telegram.say(CHAT, "keep me")
    await telegram.until(lambda: listening.health().state == "degraded")

    assert telegram.waiting == 1
    assert "cannot be stored" in listening.health().detail

    sink.broken = None
    (message,) = await sink.received(1)
    await telegram.until(lambda: telegram.waiting == 0)

    assert message.text == "keep me"
    assert listening.health().working


async def test_messages_and_cursor_are_stored_together(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """One commit, so that neither can be there without the other."""
    telegram.say(CHAT, "one")
    await sink.received(1)

    assert sink.accepted[-1] == (("4242:1000",), 1001)
    assert sink.cursors == {"telegram:4242": 1001}


async def test_a_restart_takes_nothing_twice_and_misses_nothing(telegram: TelegramServer, sink: Sink) -> None:
    """The last batch was stored but not acknowledged when the host died: Telegram gives it again."""
    sink.cursors["telegram:4242"] = 1002
    for text in ("stored before", "stored before too", "new"):
        telegram.say(CHAT, text)
    async with running(channel_of(telegram), sink):
        (message,) = await sink.received(1)

    assert message.text == "new"
    assert sink.accepted == [(("4242:1002",), 1003)]


async def test_another_bot_has_its_own_cursor(telegram: TelegramServer, sink: Sink) -> None:
    """After a change of the token every new message would otherwise be skipped, because the new bot's ids are lower."""
    sink.cursors["telegram:99"] = 500_000
    telegram.say(CHAT, "hello")
    async with running(channel_of(telegram), sink):
        await sink.received(1)

    assert sink.cursors == {"telegram:99": 500_000, "telegram:4242": 1001}


async def test_ids_that_began_anew_are_noticed(telegram: TelegramServer, sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    """After a quiet week Telegram numbers from somewhere else, also from below."""
    sink.cursors["telegram:4242"] = 900_000_000
    telegram.say(CHAT, "hello")
    async with running(channel_of(telegram), sink):
        await sink.received(1)
        telegram.say(CHAT, "again")
        await sink.received(2)

    assert sink.cursors["telegram:4242"] == 1002
    assert "telegram update ids began anew" in caplog.messages


async def test_an_update_that_cannot_be_read_does_not_hold_up_the_others(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, caplog: pytest.LogCaptureFixture
) -> None:
    """A poison update would come again for ever."""
    telegram.push({"message": {"message_id": "?", "date": "yesterday", "chat": 3}})
    telegram.say(CHAT, "next")
    (message,) = await sink.received(1)
    await telegram.until(lambda: telegram.waiting == 0)

    assert message.text == "next"
    (record,) = [record for record in caplog.records if record.message == "telegram update not understood"]
    assert record.__dict__["facts"]["error_id"]


async def test_a_second_poller_is_named_and_outlasted(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """After a 409 the bot must neither look healthy nor stay deaf."""
    await telegram.until(lambda: len(telegram.called("getUpdates")) >= 1)
    telegram.fail("getUpdates", Fault(code=409, description="Conflict: terminated by other getUpdates request"), times=3)
    telegram.interrupt_poll()
    await telegram.until(lambda: listening.health().state == "degraded")

    assert "second Pumice" in listening.health().detail

    telegram.say(CHAT, "still there?")
    await sink.received(1)
    await telegram.until(lambda: listening.health().working)


async def test_after_a_conflict_only_a_whole_poll_counts_as_working(telegram: TelegramServer, sink: Sink) -> None:
    """A short poll succeeds between two of the other program's and would say all is well."""
    telegram.fail("getUpdates", Fault(code=409, description="Conflict: terminated by other getUpdates request"))
    async with running(channel_of(telegram), sink) as channel:
        await telegram.until(lambda: len(telegram.called("getUpdates")) >= 1 and channel.health().state == "degraded")
        await telegram.until(lambda: channel.health().working)
        after = next(call for call in telegram.called("getUpdates") if call.ok)

    assert after.values["timeout"] == "1"


async def test_a_webhook_that_was_left_behind_is_removed(telegram: TelegramServer, sink: Sink) -> None:
    """Its updates are kept: polling gets them."""
    telegram.world.webhook = "https://elsewhere.example"
    telegram.say(CHAT, "hello")
    async with running(channel_of(telegram), sink):
        await sink.received(1)

    assert telegram.world.webhook == ""


@pytest.mark.parametrize(
    "fault",
    [
        Fault(drop="before"),
        Fault(drop="after"),
        Fault(code=500, description="Internal Server Error"),
        Fault(code=502, description="Bad Gateway"),
        Fault(code=429, description="Too Many Requests: retry after 1", parameters={"retry_after": 1}),
    ],
    ids=["cut before", "cut after", "500", "502", "429"],
)
async def test_polling_survives_a_bad_line(fault: Fault, telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """More failures in a row than a connection pool is kept for; then messages flow again."""
    telegram.fail("getUpdates", fault, times=1 if fault.code == 429 else 5)
    telegram.say(CHAT, "first")
    await telegram.until(lambda: listening.health().state == "degraded" or sink.messages)
    telegram.say(CHAT, "second")
    messages = await sink.received(2)
    await telegram.until(lambda: listening.health().working and telegram.waiting == 0)

    assert [message.text for message in messages] == ["first", "second"]


async def test_a_poll_that_is_never_answered_is_given_up(telegram: TelegramServer, sink: Sink) -> None:
    """The read timeout is no help against a connection that trickles; the watchdog is."""
    telegram.fail("getUpdates", Fault(slow_s=60))
    pace = type(PACE)(poll_s=1, silence_s=0.2, retry_s=0.01, retry_max_s=0.05)
    async with running(channel_of(telegram, pace=pace), sink) as channel:
        telegram.say(CHAT, "hello")
        await sink.received(1)

        assert channel.health().working


async def test_a_wrong_token_is_told_plainly_and_tried_again(telegram: TelegramServer, sink: Sink) -> None:
    """The owner may correct it at @BotFather while the host runs; the token itself is never shown."""
    async with running(channel_of(telegram, token="4242:wrong-secret"), sink) as channel:
        await telegram.until(lambda: len(telegram.called("getMe")) >= 2)
        health = channel.health()

    assert health.state == "degraded"
    assert "channels.telegram.token" in health.detail
    assert "wrong-secret" not in health.detail


async def test_losing_and_finding_the_line_is_logged_once_each(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, caplog: pytest.LogCaptureFixture
) -> None:
    """An outage of an hour must not fill the disk."""
    caplog.set_level(logging.INFO)
    await telegram.until(lambda: listening.health().working)
    telegram.fail("getUpdates", Fault(code=502, description="Bad Gateway"), times=6)
    telegram.say(CHAT, "hello")
    telegram.say(CHAT, "anybody?")
    telegram.interrupt_poll()
    await telegram.until(lambda: not telegram._faults.get("getupdates") and listening.health().working)

    events = [message for message in caplog.messages if message in ("telegram lost", "telegram back")]
    assert events == ["telegram lost", "telegram back"]


async def test_health_tells_when_telegram_was_last_heard(telegram: TelegramServer, sink: Sink) -> None:
    """The host's page shows it, and that a channel which is stopped is stopped."""
    channel = channel_of(telegram)

    assert channel.health().state == "stopped"

    async with running(channel, sink):
        await telegram.until(lambda: channel.health().working)
        heard = channel.health().last_event_at

    assert heard is not None
    assert channel.health().state == "stopped"
    assert channel.health().last_event_at is not None


async def test_the_first_poll_does_not_wait(telegram: TelegramServer, sink: Sink, listening: TelegramChannel) -> None:
    """A host that starts is ready at once, not after half a minute of silence."""
    await telegram.until(lambda: listening.health().working)

    assert telegram.called("getUpdates")[0].values["timeout"] == "0"
    assert "callback_query" in telegram.called("getUpdates")[0].values["allowed_updates"]


async def test_no_text_or_token_reaches_the_log(telegram: TelegramServer, sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    """The HTTP library logs addresses, which hold the token."""
    caplog.set_level(logging.DEBUG)
    async with running(channel_of(telegram), sink) as channel:
        telegram.say(CHAT, "my secret diary")
        await sink.received(1)
        telegram.fail("getUpdates", Fault(drop="before"), times=4)
        telegram.interrupt_poll()
        await telegram.until(lambda: channel.health().state == "degraded")
        await telegram.until(lambda: channel.health().working)

    said = " ".join(str(record.__dict__) for record in caplog.records if record.name != "asyncio")
    assert telegram.token.partition(":")[2] not in said
    assert "diary" not in said


async def test_stopping_is_quick_and_leaves_nothing_behind(telegram: TelegramServer, sink: Sink) -> None:
    """A long poll must not hold up a restart."""
    loop = asyncio.get_running_loop()
    pace = type(PACE)(poll_s=30)
    async with running(channel_of(telegram, pace=pace), sink):
        await telegram.until(lambda: len(telegram.called("getUpdates")) >= 1)
        began = loop.time()

    assert loop.time() - began < 1
