"""Days of a Telegram topic and a Slack thread: restarts, a change of the clock, a move to another zone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from bot.clock import SystemClock
from bot.config import Config
from bot.host import Host
from bot.ids import new_id
from tests.e2e.rig import configured
from tests.servers.slack import serve_slack
from tests.servers.slack_world import APP_TOKEN, BOT_TOKEN, BOT_USER
from tests.servers.telegram import TOKEN, User, serve_telegram

GROUP, TOPIC, ANNA = -1001, 7, User(1001, "Anna")


class CalendarClock(SystemClock):
    """The machine's clock, moved to another date."""

    def __init__(self, start: str) -> None:
        self._shift = datetime.fromisoformat(start).replace(tzinfo=UTC) - datetime.now(UTC)

    def now(self) -> datetime:
        return super().now() + self._shift


@asynccontextmanager
async def host_at(config: Config, moment: str) -> AsyncIterator[Host]:
    """A host that is started at a moment in UTC."""
    async with Host(config, clock=CalendarClock(moment), ids=new_id, random=Random(1)) as host:
        yield host


async def test_a_week_in_a_topic_and_a_thread(tmp_path: Path) -> None:
    """Nine o'clock stays nine o'clock, each day has one answer, and each is where it was asked for."""
    async with serve_telegram() as telegram, serve_slack() as slack:
        config = configured(
            tmp_path,
            f'''
[host]
default_time_zone = "Europe/Vienna"
[chat]
stream = false
[access]
owners = ["telegram:1001", "slack:T1/U1ANN"]
groups = ["telegram:{GROUP}", "slack:T1/C1"]
group_trigger = "always"
[channels.telegram]
token = "{TOKEN}"
api_url = "{telegram.url}"
max_sends_per_second = 0
[channels.slack]
bot_token = "{BOT_TOKEN}"
app_token = "{APP_TOKEN}"
api_url = "{slack.url}/api/"
''',
        )

        def in_topic() -> list[str]:
            return [shown.text for shown in telegram.world.messages[GROUP].values() if shown.own and shown.thread == TOPIC]

        def in_thread() -> list[str]:
            return slack.texts("C1", thread=thread)

        thread = ""
        async with host_at(config, "2026-03-27T10:00"):  # Friday
            telegram.say(GROUP, "/schedule every day at 9 remind me now: stretch", user=ANNA, thread=TOPIC)
            await telegram.until(lambda: len(in_topic()) == 1)
            thread = slack.say("C1", f"<@{BOT_USER}> !schedule every day at 9 remind me now: report")
            await slack.until(lambda: len(in_thread()) == 1)
            assert "Saturday 28 March 2026, 09:00; Sunday 29 March 2026, 09:00; Monday 30 March 2026, 09:00" in in_topic()[0]
        async with host_at(config, "2026-03-28T08:30"):  # Saturday, 09:30: the host comes back half an hour late
            await telegram.until(lambda: len(in_topic()) == 2)
            await slack.until(lambda: len(in_thread()) == 2)
            assert in_topic()[1] == "(Due Saturday 28 March 2026, 09:00; 30 min late.)\n\nReminder: stretch"
            assert "30 min late" in in_thread()[1]
        async with host_at(config, "2026-03-29T06:59:58"):  # Sunday: the clocks have gone forward, and it is about to be nine
            await telegram.until(lambda: len(in_topic()) == 3)
            await slack.until(lambda: len(in_thread()) == 3)
            assert in_topic()[2] == "Reminder: stretch"
            assert "report" in in_thread()[2]
            telegram.say(GROUP, "/timezone Asia/Tokyo", user=ANNA, thread=TOPIC)
            await telegram.until(lambda: len(in_topic()) == 4)
        async with host_at(config, "2026-03-30T00:01"):  # Monday, nine in Tokyo; in Vienna it is night
            await telegram.until(lambda: len(in_topic()) == 5)
            assert in_topic()[4] == "Reminder: stretch"
        async with host_at(config, "2026-04-02T12:00") as host:  # Thursday: away for three days, told of once
            await telegram.until(lambda: len(in_topic()) == 6)
            await slack.until(lambda: len(in_thread()) == 4)
            jobs = await host.scheduler.shown()

        assert in_topic()[5].startswith("(Due Tuesday 31 March 2026, 09:00; 2 d 12 h late.)")
        assert [shown.text for shown in telegram.world.messages[GROUP].values() if shown.own and shown.thread != TOPIC] == []
        assert len(slack.texts("C1")) == 4
        assert [(job["chat"].rpartition("/")[2], job["next_run_at"]) for job in jobs] == [
            (str(TOPIC), "2026-04-03T09:00:00+09:00"), (thread, "2026-04-03T09:00:00+02:00"),
        ]  # fmt: skip
