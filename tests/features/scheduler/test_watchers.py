"""Scripts and files that decide whether the agent is asked at all."""

from datetime import timedelta
from pathlib import Path

import pytest

from features.contracts.errors import ModelMustAct
from features.contracts.jobs import JobOrigin
from features.contracts.messages import TextBlock
from features.contracts.testing import FakeClock
from features.contracts.tools import ToolContext, ToolInvocation
from features.scheduler import SCHEDULER_MIGRATIONS
from features.scheduler.job import Job, JobRun
from features.scheduler.testing import HANDED_MIGRATIONS, MemoryDelivery
from tests.bot.memory_database import MemoryDatabase
from tests.features.scheduler.rig import CHAT, HOUR, MINUTE, START, Rig, opened


async def watch(rig: Rig, script: str, *, owner: bool = True, **arguments: str) -> Job:
    """The agent puts up a watcher that looks every minute."""
    tool = rig.scheduler.tool(CHAT, lambda: JobOrigin(by="loop:1"))
    wanted = {"action": "create", "when": "every minute", "script": script, **arguments}
    context = ToolContext(address=str(CHAT), session_id="s", workspace=Path(), scratch=Path(), owner=owner)
    result = await tool.run(ToolInvocation(id="c", arguments=wanted, context=context, report=lambda text: None))
    assert isinstance(result.content[0], TextBlock)
    return (await rig.scheduler.book.list())[-1]


async def next_run(rig: Rig, job: Job) -> JobRun:
    """What becomes of the next run."""
    before = (await rig.job(job.id)).last_run
    await rig.clock.advance(MINUTE)
    while True:
        last = (await rig.job(job.id)).last_run
        if last is not None and last != before:
            return last
        await rig.clock.advance(0)


async def test_a_watcher_that_prints_nothing_wakes_nobody(tmp_path: Path) -> None:
    """No model is asked, whatever it costs otherwise."""
    async with opened(tmp_path) as rig:
        job = await watch(rig, "true")

        assert (await next_run(rig, job)).state == "silent"
        assert rig.delivery.begun == []


async def test_what_a_watcher_prints_wakes_the_agent_with_it(tmp_path: Path) -> None:
    """It runs in the chat's folder and zone; its output is marked as what it is."""
    delivery = MemoryDelivery(tmp_path)
    delivery.zones[CHAT] = "Asia/Tokyo"
    async with opened(tmp_path, delivery=delivery) as rig:
        job = await watch(rig, "basename $PWD; date +%Z; echo '```'", prompt="Tell me what changed.")

        assert (await next_run(rig, job)).state == "done"
        [text] = rig.texts
        assert text.startswith("Tell me what changed.\n\nThis is what its script printed.")
        assert text.endswith("\n````\nloop-1\nJST\n```\n````")


async def test_a_watcher_that_fails_is_shown_and_paused_in_the_end(tmp_path: Path) -> None:
    """Its output wakes nobody; one word after five failures."""
    async with opened(tmp_path) as rig:
        job = await watch(rig, "echo no such thing >&2; exit 3")
        runs = [await next_run(rig, job) for _ in range(5)]
        paused = await rig.job(job.id)

        assert {(run.state, run.error) for run in runs} == {("failed", "exit status 3: no such thing")}
        assert paused.state == "paused"
        [notice] = rig.delivery.begun
        assert (notice.mode, "exit status 3" in notice.text) == ("text", True)


async def test_a_watcher_that_hangs_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    """After the time that the configuration gives it."""
    marker = tmp_path / "alive"
    async with opened(tmp_path, script_timeout=timedelta(seconds=0.5)) as rig:
        job = await watch(rig, f"(sleep 2; touch {marker}) & sleep 60")
        run = await next_run(rig, job)

        assert (run.state, run.error) == ("failed", "stopped after 0.5 seconds")
        assert not marker.exists()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("head -c 50000000 /dev/zero | tr '\\0' x; echo end", "characters before this are left out"),
        ("printf 'a\\000b\\033[31mred\\377'", "ab[31mred"),
    ],
)
async def test_what_is_much_or_no_text_becomes_a_prompt_of_bounded_size(tmp_path: Path, script: str, expected: str) -> None:
    """50 MB and control characters reach no model."""
    async with opened(tmp_path) as rig:
        job = await watch(rig, script)
        await next_run(rig, job)

        assert expected in rig.texts[0]
        assert len(rig.texts[0]) < 17_000


@pytest.mark.parametrize(("scripts", "owner"), [("owners", False), ("nobody", True)])
async def test_who_may_run_no_command_puts_up_no_watcher(tmp_path: Path, scripts: str, owner: bool) -> None:
    """A watcher is a command; it needs what that would need."""
    async with opened(tmp_path, scripts=scripts) as rig:
        with pytest.raises(ModelMustAct, match="does not let you put up a script"):
            await watch(rig, "true", owner=owner)

        assert await rig.scheduler.book.list() == []


async def test_a_watcher_stops_running_where_commands_are_held_back_later(tmp_path: Path) -> None:
    """What was allowed yesterday is judged again at each run."""
    database, clock, delivery = MemoryDatabase(SCHEDULER_MIGRATIONS, HANDED_MIGRATIONS), FakeClock(START), MemoryDelivery(tmp_path)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        job = await watch(rig, f"touch {tmp_path / 'ran'}", owner=False)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery, scripts="owners") as rig:
        run = await next_run(rig, job)

        assert run.state == "failed"
        assert not (tmp_path / "ran").exists()


async def test_a_watcher_that_was_at_work_when_the_host_died_is_told_and_not_repeated(tmp_path: Path) -> None:
    """It may have done half of something."""
    database, clock, delivery = MemoryDatabase(SCHEDULER_MIGRATIONS, HANDED_MIGRATIONS), FakeClock(START), MemoryDelivery(tmp_path)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        job = await watch(rig, f"echo x >> {tmp_path / 'ran'}; sleep 60", when="in 1 minute")
        await clock.advance(MINUTE)
        while not (tmp_path / "ran").exists():
            await clock.advance(0)
    async with opened(tmp_path, database=database, clock=clock, delivery=delivery) as rig:
        await clock.advance(HOUR)
        cut = await rig.job(job.id)
        rows = await database.read(lambda t: t.fetch_all("SELECT text FROM handed"))

        assert cut.last_run is not None
        assert (cut.state, cut.last_run.state) == ("done", "cut")
        assert (tmp_path / "ran").read_text() == "x\n"
        assert ["was at work when this host stopped" in row[0] for row in rows] == [True]


async def test_the_heartbeat_asks_no_model_while_there_is_nothing_to_look_after(tmp_path: Path) -> None:
    """HEARTBEAT.md says what there is; headings and comments are nothing."""
    async with opened(tmp_path) as rig:
        notes = tmp_path / "loop-1" / "HEARTBEAT.md"
        await rig.scheduler.heartbeat(CHAT, every_minutes=1, check="")
        [job] = await rig.scheduler.book.list()
        assert (await next_run(rig, job)).state == "silent"
        notes.write_text("# Heartbeat\n\n<!-- nothing yet -->\n")
        assert (await next_run(rig, job)).state == "silent"
        assert rig.delivery.begun == []
        notes.write_text("# Heartbeat\n- is the washing machine done?\n")
        await next_run(rig, job)

        [run] = rig.delivery.begun
        assert run.isolated
        assert "is the washing machine done?" in run.text


async def test_the_heartbeat_has_a_check_quiet_hours_and_an_off_switch(tmp_path: Path) -> None:
    """Off stays off, also when the configuration changes its rhythm; with 0 minutes it is gone."""
    async with opened(tmp_path, quiet_hours="22:00-07:00", scripts="nobody") as rig:
        scheduler = rig.scheduler
        await scheduler.heartbeat(CHAT, every_minutes=60, check="cat news 2>/dev/null || true")
        (tmp_path / "loop-1").mkdir(exist_ok=True)
        [job] = await scheduler.book.list()
        await rig.clock.advance(HOUR)
        (tmp_path / "loop-1" / "news").write_text("rain")
        await rig.until("2026-01-05T21:30")
        await scheduler.book.settle()
        while len(rig.texts) < 1:
            await rig.clock.advance(0)
        asked = len(rig.texts)
        assert "rain" in rig.texts[0]
        await rig.until("2026-01-06T06:30")
        assert len(rig.texts) <= asked + 1
        assert "is off" in (await scheduler.commands.job(CHAT, f"{job.id} remove")).text
        await scheduler.heartbeat(CHAT, every_minutes=30, check="cat news")
        assert [(one.state, one.definition.schedule.shortest_gap_s()) for one in await scheduler.book.list()] == [("paused", 1800)]
        assert await scheduler.heartbeats() == [CHAT]
        await scheduler.heartbeat(CHAT, every_minutes=0, check="")

        assert await scheduler.book.list() == []
