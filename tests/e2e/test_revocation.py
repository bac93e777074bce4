"""Whoever may not talk any more is not served any more, whatever was going on for them."""

import asyncio
from pathlib import Path
from typing import Any

from bot.access.access import OPERATOR
from bot.cli.host_data import open_access
from tests.e2e.rig import configured, running, with_anthropic, with_telegram
from tests.e2e.test_host import until
from tests.e2e.test_jobs import says
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Call, Reply
from tests.servers.telegram import TelegramServer, User, serve_telegram

OWNER, EVE, GROUP = 1001, User(6666, "Eve"), -77


def slow(body: dict[str, Any]) -> Reply:
    return Reply(text="secret words", delay_s=0.5)


async def let_in(telegram: TelegramServer) -> None:
    telegram.say(EVE.id, "let me in", user=EVE)
    await telegram.until(lambda: telegram.texts(EVE.id))
    code = next(word for word in telegram.texts(EVE.id)[0].replace("`", " ").split() if len(word) == 8 and word.isupper())
    telegram.say(OWNER, f"/pair {code}")
    await telegram.until(lambda: any("You may talk" in text for text in telegram.texts(EVE.id)))


async def test_a_running_turn_ends_and_what_waits_is_not_begun(tmp_path: Path) -> None:
    """Neither the answer nor the next message's."""
    async with serve_telegram() as telegram, AnthropicServer(respond=slow) as model:
        config = configured(tmp_path, with_telegram(telegram, more="[chat]\nbusy = 'follow_up'") + with_anthropic(model))
        async with running(config) as (_, client):
            await let_in(telegram)
            telegram.say(EVE.id, "tell me", user=EVE)
            telegram.say(EVE.id, "and more", user=EVE)
            await telegram.until(lambda: telegram.called("sendChatAction", chat=EVE.id))
            await client.post("/api/access/revoke", {"id": f"telegram:{EVE.id}"})
            telegram.say(EVE.id, "and this?", user=EVE)
            await telegram.until(lambda: len([text for text in telegram.texts(EVE.id) if "/pair" in text]) == 2)
            log = await client.get("/api/access/log")

        assert not [text for text in telegram.texts(EVE.id) if "secret words" in text]
        assert len(model.requests) <= 1
        assert [each["event"] for each in log[:3]] == ["code", "refused", "revoked"]


async def test_a_groups_turn_ends_with_its_admission(tmp_path: Path) -> None:
    """Whoever of it asked."""
    async with serve_telegram() as telegram, AnthropicServer(respond=slow) as model:
        async with running(configured(tmp_path, with_telegram(telegram) + with_anthropic(model))) as (_, client):
            telegram.say(GROUP, "/pair", user=User(OWNER, "Anna"))
            await telegram.until(lambda: telegram.texts(GROUP))
            telegram.say(GROUP, "@pumice_bot tell us", user=EVE)
            await telegram.until(lambda: telegram.called("sendChatAction", chat=GROUP))
            await client.post("/api/access/revoke", {"id": f"telegram:{GROUP}"})
            await telegram.until(lambda: len(telegram.texts(GROUP)) == 2)

        assert "Stopped" in telegram.texts(GROUP)[1]
        assert not [text for text in telegram.texts(GROUP) if "secret words" in text]


async def test_what_was_cut_is_not_gone_on_with_for_whoever_was_revoked_meanwhile(tmp_path: Path) -> None:
    """By the command line, while no host runs."""
    async with serve_telegram() as telegram, AnthropicServer(respond=slow) as model:
        config = configured(tmp_path, with_telegram(telegram) + with_anthropic(model))
        async with running(config) as (host, _):
            await let_in(telegram)
            telegram.say(EVE.id, "tell me", user=EVE)
            await until(lambda: model.requests)
            await host.conversations.settle(0)  # parks it, as a host that is stopped in the middle
        async with open_access(config) as access:
            await access.revoke(f"telegram:{EVE.id}", OPERATOR)
        async with running(config):
            await telegram.until(lambda: any("did not finish" in text for text in telegram.texts(EVE.id)))

        assert not [text for text in telegram.texts(EVE.id) if "secret words" in text]
        assert len(model.requests) == 1


async def test_stop_reaches_a_job_that_runs_beside_the_chat(tmp_path: Path) -> None:
    """It belongs to the chat, and people see it at work there."""
    begun = asyncio.Event()

    def respond(body: dict[str, Any]) -> Reply:
        if "water the plants" in str(body["messages"][0]):
            begun.set()
            return Reply(text="I watered", delay_s=20)
        if "tool_result" in str(body["messages"][-1]):
            return Reply(text="done")
        arguments = {"action": "create", "when": "every day at 9", "prompt": "water the plants", "isolated": True}
        return Reply(calls=[Call(name="schedule", arguments=arguments)])

    async with AnthropicServer(respond=respond) as model, running(configured(tmp_path, with_anthropic(model))) as (_, client):
        await says(client, "look after the plants")
        [job] = await client.get("/api/jobs")
        await client.post(f"/api/jobs/{job['id']}/run", {})
        await asyncio.wait_for(begun.wait(), 10)

        assert (await says(client, "/stop")).startswith("Stopped.")
        [job] = await client.get("/api/jobs")
        assert job["last_run"]["state"] == "stopped"
