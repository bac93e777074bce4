"""``pumice jobs`` with a host and without one."""

import asyncio
import json
from pathlib import Path

from bot.jobs.resting import resting_scheduler
from bot.migrations import all_migrations
from features.contracts.chat import Address
from features.contracts.jobs import JobOrigin
from features.storage import Database
from tests.bot.cli.conftest import Terminal
from tests.e2e.rig import configured, running


async def test_the_jobs_of_a_running_host_are_listed_and_changed_in_it(pumice: Terminal, tmp_path: Path) -> None:
    """It knows when the next one is due."""
    async with running(configured(tmp_path)) as (_, client):
        made = await client.post("/api/jobs", {"chat": "web:main", "text": "every day at 9 remind me now: sum up"})

        status, listed, _ = await asyncio.to_thread(pumice, "jobs", "list")
        assert (status, "every day at 09:00" in listed, "web:main" in listed, "sum up" in listed) == (0, True, True, True)
        shown = (await asyncio.to_thread(pumice, "jobs", "show", made["id"]))[1]
        assert "state: active" in shown
        assert shown.count("T09:00:00+00:00") == 4  # the next one, and the next three
        assert (await asyncio.to_thread(pumice, "jobs", "pause", made["id"]))[:2] == (
            0, f"Job {made['id']} is paused. /job {made['id']} resume lets it run again.\n",
        )  # fmt: skip
        assert (await asyncio.to_thread(pumice, "jobs", "run", made["id"]))[:2] == (0, f"Job {made['id']} runs now.\n")
        for wrong in ("9", "../chats", "x y"):
            status, _, err = await asyncio.to_thread(pumice, "jobs", "show", wrong)
            assert (status, err.startswith("pumice: error: "), "no job" in err) == (1, True, True)
        assert (await asyncio.to_thread(pumice, "jobs", "remove", made["id"]))[0] == 0
        assert await client.get("/api/jobs") == []


async def test_without_a_host_the_data_directory_is_opened(pumice: Terminal, tmp_path: Path) -> None:
    """jobs.json follows; nothing is run, because a job runs in its host."""
    assert (await asyncio.to_thread(pumice, "jobs", "list"))[1].startswith("There are no jobs yet.")
    assert not (tmp_path / "data").exists()
    assert (await asyncio.to_thread(pumice, "jobs", "pause", "1"))[0] == 1
    config = configured(tmp_path)
    config.host.data_dir.mkdir()
    async with Database(config.database_path, all_migrations()) as database:
        scheduler = resting_scheduler(config, database)
        await scheduler.make(Address("web", "main"), "every day at 9 sum up", JobOrigin())
        await scheduler.close()

    listed = await asyncio.to_thread(pumice, "jobs", "list", "--json")
    assert [(job["id"], job["prompt"], job["state"]) for job in json.loads(listed[1])] == [("1", "sum up", "active")]
    assert "paused" in (await asyncio.to_thread(pumice, "jobs", "pause", "1"))[1]
    assert "state: paused" in (await asyncio.to_thread(pumice, "jobs", "show", "1"))[1]
    assert "active again" in (await asyncio.to_thread(pumice, "jobs", "resume", "1"))[1]
    status, _, err = await asyncio.to_thread(pumice, "jobs", "run", "1")
    assert (status, "no host is running" in err) == (1, True)
    assert "removed" in (await asyncio.to_thread(pumice, "jobs", "remove", "1"))[1]
    written = config.host.data_dir / "workspaces" / "web-main" / ".pumice" / "scheduler" / "jobs.json"
    assert json.loads(written.read_text())["jobs"] == []
