"""Scheduled work of a whole host: in Telegram, over the API, by webhook, from the command line, and over SIGKILL."""

import asyncio
import hmac
import json
import os
import random
import re
import signal
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.http.client import HostClient
from features.contracts.errors import UserMustAct
from tests.e2e.rig import configured, running, with_anthropic, with_telegram
from tests.e2e.test_host import OWNER, until, until_answered
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Reply
from tests.servers.telegram import serve_telegram

ROOT = Path(__file__).parents[2]


async def says(client: HostClient, text: str) -> str:
    """Say something in the web chat and give the answer."""
    posted = await client.post("/api/chats/web:main/messages", {"text": text})
    return str((await until_answered(client, posted["id"]))["text"])


async def texts(client: HostClient, wanted: str, chat: str = "web:main") -> list[str]:
    """What the bot said in a chat, once something of it holds ``wanted``."""
    async with asyncio.timeout(20):
        while True:
            said = [row["text"] for row in await client.get(f"/api/chats/{chat}/messages") if row["role"] == "assistant"]
            if any(wanted in text for text in said):
                return said
            await asyncio.sleep(0.02)


async def test_a_newcomer_is_reminded_without_any_key(tmp_path: Path) -> None:
    """The offline assistant calls the same tool as a real model, and its reminder comes."""
    async with running(configured(tmp_path)) as (host, client):
        assert "I will remind you in 2 hours to stretch." in await says(client, "remind me in 2 hours to stretch")
        assert "every weekday at 09:00" in await says(client, "remind me every weekday at 9 to plan the day")
        assert "at 18:30" in await says(client, "remind me to eat at 18:30")
        assert "That did not work" in await says(client, "remind me at 99:99 to dream")
        jobs = await client.get("/api/jobs")
        await client.post(f"/api/jobs/{jobs[0]['id']}/run", {})

        said = await texts(client, "Reminder: stretch")
        assert sum("I made a job." in text for text in said) == 3
        assert [job["when"] for job in jobs][1] == "every weekday at 09:00"
        written = host.config.host.data_dir / "workspaces" / "web-main" / ".pumice" / "scheduler" / "jobs.json"
        await host.scheduler.book.settle()
        assert [job["id"] for job in json.loads(written.read_text())["jobs"]] == [job["id"] for job in jobs]
        assert [row["role"] for row in await client.get("/api/chats/web:main/messages")].count("user") == 4


async def test_a_reminder_reaches_telegram_with_its_buttons(tmp_path: Path) -> None:
    """Typed as a command, in the chat's own zone; the answer shows the next three runs."""
    async with serve_telegram() as telegram:
        text = with_telegram(telegram, more='[chat]\nstream = false\n[host]\ndefault_time_zone = "Europe/Vienna"')
        async with running(configured(tmp_path, text)):
            telegram.say(OWNER, "/schedule every monday at 8 remind me now: plan")
            await telegram.until(lambda: telegram.texts(OWNER))
            assert "every Monday at 08:00" in telegram.texts(OWNER)[0]
            assert "Europe/Vienna" in telegram.texts(OWNER)[0]
            telegram.say(OWNER, "/schedule in 1 second remind me now: stretch")
            await telegram.until(lambda: any("Reminder: stretch" in text for text in telegram.texts(OWNER)))
            telegram.say(OWNER, "/jobs")

            await telegram.until(lambda: any("1 plan" in text.replace("*", "") or "plan (every" in text for text in telegram.texts(OWNER)))


async def test_the_api_makes_shows_and_changes_jobs(tmp_path: Path) -> None:
    """With the same answers as the chat."""
    async with running(configured(tmp_path)) as (_, client):
        made = await client.post("/api/jobs", {"chat": "web:main", "text": "every day at 9 sum up"})
        shown = await client.get(f"/api/jobs/{made['id']}")
        assert shown | {"prompt": "sum up", "when": "every day at 09:00", "state": "active", "kind": "prompt"} == shown
        assert len(shown["next_runs"]) == 3
        assert "paused" in (await client.post(f"/api/jobs/{made['id']}/pause", {}))["text"]
        assert [job["state"] for job in await client.get("/api/jobs", chat="web:main")] == ["paused"]
        assert await client.get("/api/jobs", chat="web:other") == []
        await client.delete(f"/api/jobs/{made['id']}")
        assert await client.get("/api/jobs") == []
        for wrong in ({"chat": "web:main", "text": "some day x"}, {"chat": "nowhere", "text": "in 1 day x"}, {"chat": "web:main"}):
            with pytest.raises(UserMustAct):
                await client.post("/api/jobs", wrong)
        with pytest.raises(UserMustAct, match="no job '7'"):
            await client.get("/api/jobs/7")


HOOK = """
[webhooks.builds]
secret = "s3cret-of-the-hook"
chat = "web:main"
prompt = "remind me now: {body}"
"""


def signed(body: bytes) -> str:
    return hmac.new(b"s3cret-of-the-hook", body, "sha256").hexdigest()


async def test_a_signed_event_wakes_its_chat_once(tmp_path: Path) -> None:
    """No token; a delivery that the sender repeats is one event; an unsigned one is none."""
    async with running(configured(tmp_path, HOOK)) as (host, client), httpx2.AsyncClient(base_url=host.url, trust_env=False) as http:
        body = b"build 7 is red"
        first = await http.post("/hooks/builds", content=body, headers={"x-pumice-signature": signed(body), "x-pumice-delivery": "d1"})
        again = await http.post(
            "/hooks/builds", content=body, headers={"x-pumice-signature": f"sha256={signed(body)}", "x-pumice-delivery": "d1"}
        )
        assert (first.status_code, first.json()["duplicate"]) == (202, False)
        assert (again.status_code, again.json()["duplicate"]) == (202, True)
        said = await texts(client, "Reminder: build 7 is red")
        assert len(said) == 1
        refused = [
            await http.post("/hooks/builds", content=body),
            await http.post("/hooks/builds", content=b"build 8", headers={"x-pumice-signature": signed(body)}),
            await http.post("/hooks/builds", content=body, headers={b"x-pumice-signature": "é".encode()}),
            await http.post("/hooks/other", content=body, headers={"x-pumice-signature": signed(body)}),
            await http.post("/hooks/builds", content=b"x" * 1_000_001),
            await http.get("/hooks/builds"),
        ]

        assert [response.status_code for response in refused] == [401, 401, 401, 404, 413, 405]
        assert len(await texts(client, "Reminder")) == 1


async def test_an_event_for_a_chat_that_cannot_be_reached_is_refused(tmp_path: Path) -> None:
    """The sender may try again; the operator reads which key to mend."""
    config = configured(tmp_path, HOOK.replace("web:main", "telegram:5"))
    async with running(config) as (host, _), httpx2.AsyncClient(base_url=host.url, trust_env=False) as http:
        response = await http.post("/hooks/builds", content=b"x", headers={"x-pumice-signature": signed(b"x")})

        assert response.status_code == 503
        assert "webhooks.builds.chat" in response.json()["error"]


async def test_the_heartbeat_starts_where_an_owner_talks(tmp_path: Path) -> None:
    """A job like any other, in that chat's list; without the key it goes."""
    async with running(configured(tmp_path, "[heartbeat]\nevery_minutes = 30")) as (_, client):
        await says(client, "hello")
        async with asyncio.timeout(20):
            while not (jobs := await client.get("/api/jobs")):  # noqa: ASYNC110 - it is made beside the answer
                await asyncio.sleep(0.02)
        await says(client, "hello")
        assert [(job["when"], job["chat"]) for job in jobs] == [("every 30 minutes", "web:main")]
        assert len(await client.get("/api/jobs")) == 1
    async with running(configured(tmp_path)) as (_, client):
        assert await client.get("/api/jobs") == []


# Over SIGKILL

CHATS = range(1, 9)
KILLS = 4
_DUE = re.compile(r"Scheduled job (\d+), due ([^,]+, [\d:]+)")


class CountingAnthropic(AnthropicServer):
    """Answers after a moment and counts which run it was asked for how often."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(respond=self._reply, record=False)
        self.asked: Counter[tuple[str, str]] = Counter()
        self._chance = chance

    def _reply(self, body: dict[str, Any]) -> Reply:
        job, due = _DUE.findall(str(body["messages"][-1]))[-1]
        self.asked[job, due] += 1
        return Reply(text=f"Answer to job {job}, due {due}.", delay_s=self._chance.choice([0.0, 0.05, 0.3]))


async def test_no_run_happens_twice_and_none_is_lost_however_often_the_host_dies(tmp_path: Path) -> None:
    """Each run that the model was asked for was asked for once, and its chat reads the answer or that it was cut."""
    chance = random.Random(20260105)
    async with serve_telegram() as telegram, CountingAnthropic(chance) as model:
        more = "[chat]\nstream = false\n[scheduler]\nmin_interval_s = 1\n[processes]\nharden = false\n[http]\nport = 0"
        owners = ", ".join(f'"telegram:{chat}"' for chat in CHATS)
        text = with_telegram(telegram, more=more).replace('["telegram:1001"]', f"[{owners}]") + with_anthropic(model)
        (tmp_path / "pumice.toml").write_text(text)
        for chat in CHATS:
            telegram.say(chat, f"/schedule every {1 + chat % 3} seconds look")
        for kill in range(KILLS):
            with (tmp_path / "host.log").open("ab") as log:
                host = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "bot.cli", "run", "--config", str(tmp_path / "pumice.toml"),
                    cwd=ROOT, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, stdout=log, stderr=log,
                )  # fmt: skip
            asked = model.asked.total()
            await until(lambda asked=asked: model.asked.total() > asked + 4)  # type: ignore[misc]
            await asyncio.sleep(chance.random() * 0.5)
            host.send_signal(signal.SIGKILL if kill < KILLS - 1 else signal.SIGTERM)
            await host.wait()

        said = "\n".join("\n".join(telegram.texts(chat)) for chat in CHATS)
        with sqlite3.connect(tmp_path / "data" / "state.db") as database:
            runs = database.execute("SELECT job_id, due_at, state, count(*) FROM job_runs GROUP BY job_id, due_at").fetchall()
        database.close()

    assert model.asked.total() > 12
    assert {key: count for key, count in model.asked.items() if count > 1} == {}
    assert all(count == 1 for *_, count in runs)
    answered = set(re.findall(r"Answer to job (\d+), due ([^,]+, [\d:]+)", said))
    cut = Counter(re.findall(r"Job (\d+) \(look\), due ([^,]+, [\d:]+), was at work", said))
    lost = set(model.asked) - answered - set(cut)
    assert len(lost) <= len(CHATS), (lost, len(answered), len(cut))  # at most what the last stop parked, which the next start would tell
