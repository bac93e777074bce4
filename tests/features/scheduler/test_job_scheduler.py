"""What is due runs, once, where it belongs."""

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from features.contracts.chat import Address
from features.contracts.errors import UserMustAct
from features.contracts.jobs import JobOrigin
from features.contracts.testing import FakeClock
from features.scheduler import SCHEDULER_MIGRATIONS
from features.scheduler.testing import HANDED_MIGRATIONS, MemoryDelivery
from tests.bot.memory_database import MemoryDatabase
from tests.features.scheduler.rig import CHAT, DAY, HOUR, MINUTE, START, eventually, opened

TOPIC = Address("loop", "1", "77")


def memory() -> MemoryDatabase:
    return MemoryDatabase(SCHEDULER_MIGRATIONS, HANDED_MIGRATIONS)


async def test_a_reminder_comes_once_when_its_time_is_reached(tmp_path: Path) -> None:
    """Not early, and not a second time."""
    async with opened(tmp_path) as rig:
        job = await rig.schedule("in 20 minutes stretch")
        await rig.clock.advance(20 * MINUTE - 1)
        assert rig.texts == []
        await rig.clock.advance(1)
        assert rig.texts == ["stretch"]
        await rig.clock.advance(30 * DAY)

        assert rig.texts == ["stretch"]
        assert (await rig.job(job.id)).state == "done"


async def test_a_rhythm_goes_on(tmp_path: Path) -> None:
    """Every weekday, and not at the weekend."""
    async with opened(tmp_path) as rig:
        await rig.schedule("every weekday at 9 sum up")
        await rig.clock.advance(7 * DAY)

        assert [run.due_at.isoformat() for run in rig.delivery.begun] == [f"2026-01-{day:02}T09:00:00+00:00" for day in (5, 6, 7, 8, 9)]


async def test_a_run_answers_to_the_thread_it_was_asked_for_in(tmp_path: Path) -> None:
    """The place owns the job, the topic gets the answer, and the model knows what this is."""
    async with opened(tmp_path) as rig:
        await rig.schedule("in 1 minute look", TOPIC, by="loop:5", owner=True, group=True)
        await rig.clock.advance(MINUTE)
        [run] = rig.delivery.begun

        assert (run.address, run.by, run.owner, run.group) == (TOPIC, "loop:5", True, True)
        assert "Monday 5 January 2026, 08:01, UTC" in run.note
        assert "[SILENT]" in run.note
        assert run.heading == ""


async def test_what_fell_due_while_no_host_ran_runs_once_and_says_that_it_is_late(tmp_path: Path) -> None:
    """However often it was missed; then the rhythm goes on as if nothing had been."""
    database, clock, delivery = memory(), FakeClock(START), MemoryDelivery(tmp_path)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        await rig.schedule("every day at 9 sum up")
        await rig.schedule("at 8:30 stretch")
    await clock.advance(3 * DAY + 3 * HOUR)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        await clock.advance(0)
        first = sorted(run.text for run in delivery.begun)
        late = next(run for run in delivery.begun if run.text == "sum up")
        await clock.advance(DAY)

        assert first == ["stretch", "sum up"]
        assert late.heading == "(Due Monday 5 January 2026, 09:00; 3 d 2 h late.)"
        assert "3 d 2 h late" in late.note
        assert [run.due_at.day for run in delivery.begun if run.text == "sum up"] == [5, 9]


async def test_what_fell_due_while_no_host_ran_can_be_left_out(tmp_path: Path) -> None:
    """A one-time job that is left out is told of, for nothing else would remind of it."""
    database, clock, delivery = memory(), FakeClock(START), MemoryDelivery(tmp_path)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        await rig.schedule("every day at 9 sum up")
        once = await rig.schedule("at 8:30 stretch")
    await clock.advance(3 * HOUR)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery, catch_up="skip") as rig:
        await clock.advance(0)
        assert [run.mode for run in delivery.begun] == ["text"]
        assert "was left out: stretch" in rig.texts[0]
        assert (await rig.job(once.id)).state == "done"
        await clock.advance(DAY)

        assert rig.texts[1:] == ["sum up"]


async def test_frequent_restarts_do_not_put_an_interval_off(tmp_path: Path) -> None:
    """Its anchor is on the disk."""
    database, clock, delivery = memory(), FakeClock(START), MemoryDelivery(tmp_path)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        await rig.schedule("every 6 hours look")
    for _ in range(24):
        async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
            await clock.advance(HOUR)

    assert [run.due_at.hour for run in delivery.begun] == [14, 20, 2, 8]


async def test_a_clock_that_is_set_forward_wakes_what_is_due_by_it_and_one_set_back_repeats_nothing(tmp_path: Path) -> None:
    """Administrators do that."""
    async with opened(tmp_path) as rig:
        await rig.schedule("every day at 9 sum up")
        rig.clock.set(START + timedelta(hours=2))
        await rig.clock.advance(6 * HOUR)
        assert len(rig.texts) == 1
        rig.clock.set(START)
        await rig.clock.advance(6 * HOUR)

        assert len(rig.texts) == 1


async def test_a_daylight_saving_week_in_vienna(tmp_path: Path) -> None:
    """02:30 comes at 03:30 on the day that has none, and once on the day that has two."""
    delivery = MemoryDelivery(tmp_path)
    delivery.zones[CHAT] = "Europe/Vienna"
    async with opened(tmp_path, delivery=delivery, clock=FakeClock(datetime(2026, 3, 27, 12, tzinfo=UTC))) as rig:
        await rig.schedule("every day at 2:30 look")
        await rig.until("2026-03-30T12:00")
        spring = [f"{run.due_at:%d %H:%M}" for run in delivery.begun]
        delivery.begun.clear()
        await rig.until("2026-10-24T12:00")
        delivery.begun.clear()
        await rig.until("2026-10-26T12:00")

        assert spring == ["28 01:30", "29 01:30", "30 00:30"]
        assert [f"{run.due_at:%d %H:%M}" for run in delivery.begun] == ["25 00:30", "26 01:30"]


async def test_jobs_follow_the_zone_of_their_chat(tmp_path: Path) -> None:
    """Nine o'clock is nine o'clock there; a span of time is not moved."""
    async with opened(tmp_path) as rig:
        daily, once = await rig.schedule("every day at 9 x"), await rig.schedule("tomorrow at 7 y")
        span = await rig.schedule("in 5 hours z")
        await rig.scheduler.book.zone_changed(CHAT, "Asia/Tokyo")

        assert [str((await rig.job(job.id)).next_at) for job in (daily, once, span)] == [
            "2026-01-06 00:00:00+00:00", "2026-01-05 22:00:00+00:00", "2026-01-05 13:00:00+00:00",
        ]  # fmt: skip


async def test_a_zone_that_changed_while_no_host_ran_is_noticed_at_the_start(tmp_path: Path) -> None:
    """The configuration's own zone may have been another one."""
    database, clock, delivery = memory(), FakeClock(START), MemoryDelivery(tmp_path)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        job = await rig.schedule("every day at 9 x")
    delivery.zones[CHAT] = "Europe/Vienna"
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        await clock.advance(1)

        assert (await rig.job(job.id)).next_at == datetime(2026, 1, 6, 8, tzinfo=UTC)


async def test_quiet_hours_put_off_what_repeats_and_not_what_somebody_named(tmp_path: Path) -> None:
    """A reminder for 23:00 is meant; the answer says so beforehand. A job may have its own hours."""
    async with opened(tmp_path, quiet_hours="22:00-07:00") as rig:
        await rig.schedule("every 4 hours look")
        await rig.schedule("at 23:00 sleep")
        job = await rig.schedule("every day at 23:30 late")
        assert job.next_at == datetime(2026, 1, 6, 7, tzinfo=UTC)
        await rig.until("2026-01-06T09:00")

        assert [(f"{run.due_at:%H}", run.text) for run in rig.delivery.begun] == [
            ("12", "look"), ("16", "look"), ("20", "look"), ("23", "sleep"), ("07", "look"), ("07", "late"), ("08", "look"),
        ]  # fmt: skip


async def test_what_is_late_waits_for_the_end_of_quiet_hours(tmp_path: Path) -> None:
    """A host that comes back at three in the morning wakes nobody."""
    database, clock, delivery = memory(), FakeClock(START), MemoryDelivery(tmp_path)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        await rig.schedule("every day at 21:00 look")
    await clock.advance(19 * HOUR)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery, quiet_hours="22:00-07:00") as rig:
        await clock.advance(HOUR)
        assert delivery.begun == []
        await rig.until("2026-01-06T07:00")

        assert rig.texts == ["look"]


async def test_a_job_pauses_after_five_failures_and_says_so_once(tmp_path: Path) -> None:
    """With a button to go on; a success in between starts the count anew."""
    async with opened(tmp_path) as rig:
        job = await rig.schedule("every hour look")
        rig.answers = "failed"
        await rig.clock.advance(4 * HOUR)
        rig.answers = "done"
        await rig.clock.advance(HOUR)
        rig.answers = "failed"
        await rig.clock.advance(20 * HOUR)
        paused = await rig.job(job.id)
        [notice] = [run for run in rig.delivery.begun if run.mode == "text"]

        assert (paused.state, paused.failures, paused.next_at) == ("paused", 5, None)
        assert len(rig.texts) == 11
        assert "failed 5 times in a row and is paused" in notice.text
        assert notice.buttons[0][0].command == f"/job {job.id} resume"
        rig.answers = "done"
        assert (await rig.scheduler.book.resume(job.id)).state == "active"
        await rig.clock.advance(HOUR)
        assert len(rig.texts) == 12


async def test_no_more_runs_at_a_time_than_allowed_and_one_after_another_in_a_chat(tmp_path: Path) -> None:
    """The others stay due until there is room; a run behind what goes on in its chat takes none."""
    async with opened(tmp_path, concurrency=2) as rig:
        rig.answers = None
        for number in range(5):
            await rig.schedule("in 1 minute look", Address("loop", str(number)))
        await rig.schedule("in 1 minute look again", Address("loop", "0"))
        await rig.schedule("in 2 minutes look", Address("loop", "busy"))
        rig.delivery.at_work.add(Address("loop", "busy"))
        await rig.clock.advance(MINUTE)
        assert [run.address.chat for run in rig.delivery.begun] == ["0", "1"]
        rig.scheduler.run_ended(rig.delivery.begun[1].id, "done")
        await rig.clock.advance(1)
        assert [run.address.chat for run in rig.delivery.begun] == ["0", "1", "2"]
        rig.scheduler.run_ended(rig.delivery.begun[0].id, "done")
        rig.answers = "done"
        rig.scheduler.run_ended(rig.delivery.begun[2].id, "done")
        await rig.clock.advance(1)

        assert sorted(run.address.chat for run in rig.delivery.begun) == ["0", "0", "1", "2", "3", "4"]
        await rig.clock.advance(MINUTE)
        assert rig.delivery.begun[-1].address.chat == "busy"


async def test_a_run_that_lasts_beyond_its_next_time_is_followed_by_one(tmp_path: Path) -> None:
    """Never two at a time, and not one for each time that passed."""
    async with opened(tmp_path) as rig:
        rig.answers = None
        await rig.schedule("every 10 minutes look")
        await rig.clock.advance(HOUR)
        assert len(rig.texts) == 1
        rig.scheduler.run_ended(rig.delivery.begun[0].id, "done")
        await rig.clock.advance(1)

        assert [f"{run.due_at:%H:%M}" for run in rig.delivery.begun] == ["08:10", "08:20"]


@pytest.mark.parametrize(
    ("words", "options", "said"),
    [
        ("cron * * * * * look", {"min_interval": timedelta(minutes=5)}, "every 60 seconds; this host lets 300 seconds"),
        ("every 30 seconds look", {}, "every 30 seconds"),
        ("every day at 9", {}, "What shall I do then"),
        ("every day at 9 " + "x" * 9000, {}, "too long"),
    ],
)
async def test_what_cannot_be_a_job_is_refused(tmp_path: Path, words: str, options: dict[str, Any], said: str) -> None:
    """With what would be possible."""
    async with opened(tmp_path, **options) as rig:
        with pytest.raises(UserMustAct, match=said):
            await rig.schedule(words)

        assert await rig.scheduler.book.list() == []


async def test_a_chat_has_only_so_many_jobs(tmp_path: Path) -> None:
    """Those that are done do not count."""
    async with opened(tmp_path, max_jobs_per_chat=2) as rig:
        await rig.schedule("in 1 minute one")
        await rig.schedule("in 1 day two", TOPIC)
        with pytest.raises(UserMustAct, match="2 jobs already"):
            await rig.schedule("in 1 day three")
        await rig.schedule("in 1 day elsewhere", Address("loop", "2"))
        await rig.clock.advance(MINUTE)

        await rig.schedule("in 1 day three")


async def test_a_job_that_a_job_made_makes_no_further_one(tmp_path: Path) -> None:
    """Or they would multiply."""
    async with opened(tmp_path) as rig:
        await rig.schedule("in 1 minute one", depth=1)
        with pytest.raises(UserMustAct, match="makes no further ones"):
            await rig.schedule("in 1 minute two", depth=2)


async def test_jobs_of_a_chat_that_is_gone_are_parked_until_somebody_is_there_again(tmp_path: Path) -> None:
    """Not tried every minute, and not forgotten."""
    async with opened(tmp_path) as rig:
        job, other = await rig.schedule("every hour look"), await rig.schedule("every day at 9 sum up", TOPIC)
        await rig.clock.advance(HOUR)
        rig.scheduler.answer_delivered([rig.delivery.begun[0].id, "unknown"], "the bot was blocked")
        await rig.clock.advance(3 * HOUR)
        parked = [await rig.job(one.id) for one in (job, other)]
        assert len(rig.texts) == 2  # both were due at nine
        assert [(one.state, one.reason) for one in parked] == [("parked", "the bot was blocked")] * 2
        assert await rig.scheduler.book.parked_places() == {"loop:1"}
        await rig.scheduler.book.unpark(CHAT)
        await rig.clock.advance(HOUR)

        assert len(rig.texts) == 3


async def test_a_person_who_is_not_admitted_any_more_has_no_jobs_run(tmp_path: Path) -> None:
    """Whatever they set up before."""
    async with opened(tmp_path) as rig:
        job = await rig.schedule("every hour look", by="loop:9")
        rig.delivery.refused[CHAT] = "loop:9 may not talk here"
        await rig.clock.advance(HOUR)

        assert rig.delivery.begun == []
        assert (await rig.job(job.id)).state == "parked"
        with pytest.raises(UserMustAct, match="may not talk"):
            await rig.scheduler.run_now(job.id)


async def test_a_run_and_its_delivery_are_told_apart(tmp_path: Path) -> None:
    """The answer is there although the platform has not taken it yet."""
    async with opened(tmp_path) as rig:
        job = await rig.schedule("every hour look")
        await rig.clock.advance(HOUR)
        before = (await rig.job(job.id)).last_run
        rig.scheduler.answer_delivered([rig.delivery.begun[0].id])
        await rig.clock.advance(1)
        after = (await rig.job(job.id)).last_run

        assert before is not None
        assert after is not None
        assert [(run.state, run.delivery) for run in (before, after)] == [("done", "handed"), ("done", "delivered")]


async def test_run_now_runs_beside_the_schedule(tmp_path: Path) -> None:
    """And not while it is at work."""
    async with opened(tmp_path) as rig:
        rig.answers = None
        job = await rig.schedule("every day at 9 look")
        await rig.scheduler.run_now(job.id)
        with pytest.raises(UserMustAct, match="at work already"):
            await rig.scheduler.run_now(job.id)
        rig.scheduler.run_ended(rig.delivery.begun[0].id, "done")
        await rig.until("2026-01-05T09:00")

        assert len(rig.texts) == 2


async def test_a_stored_job_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """Another version may have written it."""
    async with opened(tmp_path) as rig:
        broken, good = await rig.schedule("every hour one"), await rig.schedule("every hour two", Address("loop", "2"))
        await rig.database.write(lambda t: t.execute("UPDATE jobs SET definition = '{\"x\": 1}' WHERE id = ?", (broken.id,)))
        await rig.clock.advance(2 * HOUR)
        state = await rig.database.read(lambda t: t.fetch_one("SELECT state FROM jobs WHERE id = ?", (broken.id,)))

        assert rig.texts == ["two", "two"]
        assert state == ("paused",)
        assert (await rig.job(good.id)).state == "active"


# jobs.json


def jobs_file(folder: Path) -> Path:
    return folder / "loop-1" / ".pumice" / "scheduler" / "jobs.json"


async def test_the_file_of_a_place_follows_each_change(tmp_path: Path) -> None:
    """Id, prompt, when, zone, next run with its offset, state, last run."""
    delivery = MemoryDelivery(tmp_path)
    delivery.zones[CHAT] = "Europe/Vienna"
    async with opened(tmp_path, delivery=delivery) as rig:
        job = await rig.schedule("every weekday at 9:30 sum up", TOPIC)
        await rig.scheduler.book.settle()
        [shown] = json.loads(jobs_file(tmp_path).read_bytes())["jobs"]
        wanted = {"id": job.id, "chat": "loop:1/77", "prompt": "sum up", "when": "every weekday at 09:30", "zone": "Europe/Vienna"}
        assert shown | wanted | {"next_run_at": "2026-01-05T09:30:00+01:00", "state": "active", "last_run": None} == shown
        await rig.clock.advance(HOUR)
        await rig.scheduler.book.settle()
        [shown] = json.loads(jobs_file(tmp_path).read_bytes())["jobs"]
        assert (shown["next_run_at"], shown["last_run"]["state"]) == ("2026-01-06T09:30:00+01:00", "done")
        await rig.scheduler.book.remove(job.id)
        await rig.scheduler.book.settle()

        assert json.loads(jobs_file(tmp_path).read_bytes())["jobs"] == []


async def test_a_file_that_somebody_changed_is_written_anew_and_the_log_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The database is the truth; also a symlink is no way out of the folder."""
    database, delivery = memory(), MemoryDelivery(tmp_path)
    caplog.set_level(logging.WARNING, "pumice.scheduler")
    async with opened(tmp_path, database=database, delivery=delivery) as rig:
        await rig.schedule("every day at 9 sum up")
        await rig.scheduler.book.settle()
        truth = jobs_file(tmp_path).read_bytes()
    assert "somebody else" not in caplog.text
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    for change in (lambda: jobs_file(tmp_path).write_text('{"jobs": []}'), lambda: jobs_file(tmp_path).symlink_to(elsewhere)):
        caplog.clear()
        jobs_file(tmp_path).unlink()
        change()
        async with opened(tmp_path, database=database, delivery=delivery) as rig:
            await eventually(lambda: "changed by somebody else" in caplog.text)

        assert jobs_file(tmp_path).read_bytes() == truth
    assert elsewhere.read_text() == "mine"


# What others ask for


async def test_a_reminder_of_another_feature_is_one_job_that_moves(tmp_path: Path) -> None:
    """An event's reminder: delivered as it stands, moved with the event, gone with it."""
    async with opened(tmp_path) as rig:
        book = rig.scheduler.book
        await book.remind(CHAT, "event-1", at=START + timedelta(hours=1), text="The dentist, in 15 minutes")
        await book.remind(CHAT, "event-1", at=START + timedelta(hours=2), text="The dentist, in 15 minutes")
        await book.remind(CHAT, "event-2", at=START + timedelta(hours=2), text="Something else")
        assert await book.forget(CHAT, "event-2")
        assert not await book.forget(CHAT, "event-2")
        await rig.clock.advance(DAY)

        assert [(run.mode, run.text, run.due_at.hour) for run in rig.delivery.begun] == [("text", "The dentist, in 15 minutes", 10)]
        with pytest.raises(UserMustAct, match="passed"):
            await book.remind(CHAT, "event-3", at=START, text="late")


async def test_commands_answer_with_the_time_the_zone_and_the_next_three_runs(tmp_path: Path) -> None:
    """So that everybody sees what was understood."""
    async with opened(tmp_path) as rig:
        commands = rig.scheduler.commands
        made = await commands.schedule(CHAT, "every monday at 8 plan the week", JobOrigin())
        listed = await commands.jobs(TOPIC)
        shown = await commands.job(CHAT, "1")

        assert "every Monday at 08:00 (UTC)" in made.text
        assert "Monday 12 January 2026, 08:00; Monday 19 January 2026, 08:00; Monday 26 January 2026, 08:00" in made.text
        assert [button.command for button in made.buttons[0]] == ["/job 1 run", "/job 1 pause", "/job 1 remove"]
        assert "**1** plan the week (every Monday at 08:00), next Mon 12 Jan, 08:00" in listed.text
        assert "plan the week" in shown.text
        assert "paused" in (await commands.job(CHAT, "1 pause")).text
        assert "active again" in (await commands.job(CHAT, "1 resume")).text
        assert "runs now" in (await commands.job(CHAT, "1 run")).text
        assert "removed" in (await commands.job(CHAT, "1 remove")).text
        for wrong, said in (("", "Which one"), ("1", "no job '1'"), ("9 run", "no job '9'")):
            with pytest.raises(UserMustAct, match=said):
                await commands.job(CHAT, wrong)


async def test_the_jobs_of_one_chat_are_no_business_of_another(tmp_path: Path) -> None:
    """They cannot be seen, run or removed from there."""
    async with opened(tmp_path) as rig:
        await rig.schedule("every day at 9 secret plans")
        with pytest.raises(UserMustAct, match="no job"):
            await rig.scheduler.commands.job(Address("loop", "2"), "1 remove")

        assert "secret" not in (await rig.scheduler.commands.jobs(Address("loop", "2"))).text
