"""The connection itself: lost, refused, silent, and what health says meanwhile."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from bot.clock import SystemClock
from channels.slack import SlackChannel, SlackOptions
from channels.slack.api import Me, SlackApi
from channels.slack.events import from_event
from channels.slack.intake import Intake, NotTaken
from channels.slack.people import People
from features.contracts.chat import Cursor, InboundMessage, WebhookAnswer
from tests.channels.slack.rig import DM, Sink, channel_of, running
from tests.servers.serving import serve
from tests.servers.slack import Fault, SlackServer, serve_slack
from tests.servers.slack_world import BOT_TOKEN


async def test_health_tells_when_it_hears(slack: SlackServer, sink: Sink, listening: SlackChannel) -> None:
    """And when it heard last."""
    slack.say(DM, "hello")
    await sink.received(1)

    assert listening.health().working
    assert listening.health().last_event_at is not None


@pytest.mark.parametrize("announced", [True, False])
async def test_a_connection_that_ends_is_made_again(slack: SlackServer, sink: Sink, listening: SlackChannel, announced: bool) -> None:
    """What is said meanwhile arrives, and only one connection stands."""
    await slack.disconnect(announced=announced)
    slack.say(DM, "meanwhile")
    await sink.received(1)

    assert slack.connections == 1
    assert listening.health().working


async def test_a_connection_that_falls_silent_is_noticed(slack: SlackServer, sink: Sink) -> None:
    """It looks alive, and no pong ever comes."""
    slack.silent = True
    async with running(channel_of(slack), sink):
        await slack.until(lambda: slack.connections)
        slack.silent = False
        await slack.until(lambda: len(slack.called("apps.connections.open")) >= 2 and slack.connections)
        slack.say(DM, "hello")
        await sink.received(1)


@pytest.mark.parametrize(
    ("method", "fault", "words"),
    [
        ("auth.test", Fault(error="invalid_auth"), "bot_token"),
        ("auth.test", Fault(error="fatal_error", status=500), "fatal_error"),
        ("auth.test", Fault(drop="before"), "No connection"),
        ("apps.connections.open", Fault(error="not_allowed_token_type"), "app_token"),
        ("apps.connections.open", Fault(retry_after=1), "pause"),
        ("apps.connections.open", Fault(drop="before"), "No connection"),
    ],
)
async def test_what_keeps_it_from_hearing_is_said_and_got_over(
    slack: SlackServer, sink: Sink, method: str, fault: Fault, words: str
) -> None:
    """Whatever it is, it goes on trying."""
    slack.fail(method, fault)
    channel = channel_of(slack)
    seen: list[str] = []
    async with running(channel, sink):
        await slack.until(lambda: slack.called(method))

        def connected() -> bool:
            seen.append(channel.health().detail)
            return bool(slack.connections)

        await slack.until(connected)
        slack.say(DM, "hello")
        await sink.received(1)

        assert channel.health().working
    assert any(words in detail for detail in seen)
    assert not any("xoxb" in detail or "xapp" in detail for detail in seen)
    assert channel.health().state == "stopped"


async def test_events_over_http(slack: SlackServer, sink: Sink) -> None:
    """Signed ones are stored and answered; forged and old ones are neither; Slack's first question is answered."""
    channel = channel_of(slack, mode="http")

    async def app(scope: Mapping[str, object], receive: object, send: object) -> None:
        from starlette.requests import Request
        from starlette.responses import Response

        request = Request(scope, receive)  # type: ignore[arg-type]
        answer: WebhookAnswer = await channel.webhook(await request.body(), dict(request.headers))
        response = Response(answer.body, answer.status, media_type=answer.content_type)
        await response(scope, receive, send)  # type: ignore[arg-type]

    async with serve(app) as url, running(channel, sink):
        slack.events_url = url + "/slack/events"
        await slack.until(lambda: slack.called("auth.test"))
        slack.say(DM, "over http")
        (message,) = await sink.received(1)
        await slack.until(lambda: slack.answers)
        challenge = '{"type": "url_verification", "challenge": "abc", "token": "x"}'

        assert message.text == "over http"
        assert slack.answers == [(200, "")]
        assert "abc" in (await slack.post_signed(challenge))[1]
        assert (await slack.post_signed(challenge, secret="wrong"))[0] == 401
        assert (await slack.post_signed(challenge, age_s=600))[0] == 401

        sink.broken = OSError("disk full")
        slack.say(DM, "again")
        await slack.until(lambda: slack.answers[-1][0] == 503)
        slack.command(DM, "help")
        slack.events_url = ""

    assert channel.health().state == "stopped"


async def test_a_channel_that_stops_leaves_no_event_waiting() -> None:
    """What was not stored is not acknowledged, and whoever waits for the answer hears so at once: also what stood behind it."""

    class Stuck(Sink):
        async def accept(self, messages: Sequence[InboundMessage], cursor: Cursor | None = None) -> None:
            began.set()
            await asyncio.get_running_loop().create_future()

    began = asyncio.Event()
    async with serve_slack() as slack:
        api = SlackApi(SlackOptions(bot_token=BOT_TOKEN, api_url=f"{slack.url}/api/"))
        people = People(api, SystemClock())
        intake = Intake(Stuck(), people, stored=lambda message: None)
        me = Me(team_id="T1", user_id="U0BOT", bot_id="B0BOT")
        events = [{"type": "message", "channel": DM, "user": "U1ANN", "text": "x", "ts": f"{number}.0"} for number in (1, 2)]
        first, second = (from_event({"event": event}, me) for event in events)
        assert first is not None
        assert second is not None
        running_ = asyncio.create_task(intake.run())
        waiting = [asyncio.create_task(intake.take(first))]
        await began.wait()
        waiting.append(asyncio.create_task(intake.take(second)))
        await asyncio.sleep(0)
        running_.cancel()
        async with asyncio.timeout(5):
            told = await asyncio.gather(*waiting, return_exceptions=True)
        await people.close()
        await api.close()

    assert [type(each) for each in told] == [NotTaken, NotTaken]
