"""A chat that is longer than its model can remember."""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.http.client import HostClient
from tests.e2e.rig import configured, running
from tests.servers.anthropic import AnthropicServer, Failure
from tests.servers.openai import OpenAIServer
from tests.servers.script import Reply, Step

ROOT = Path(__file__).parents[2]
RULE = "Never delete a file of this chat without asking Anna first, not even a draft."
WRITTEN = "Answer in the language of the question."
SUMMING_UP = "You write notes"


def config(server: AnthropicServer | OpenAIServer, *, keep: int = 60, more: str = "") -> str:
    kind = "anthropic" if isinstance(server, AnthropicServer) else "openai-compatible"
    url = server.url if kind == "anthropic" else f"{server.url}/v1"
    return f'''
[http]
port = 0
[processes]
harden = false
[models]
default = "service/claude-sonnet-5-5"
{more}
[providers.service]
kind = "{kind}"
api_key = "{server.api_key}"
base_url = "{url}"
[[providers.service.models]]
id = "claude-sonnet-5-5"
context_window = 100000
[compaction]
keep_recent_tokens = {keep}
'''


def is_summary(body: dict[str, Any]) -> bool:
    return SUMMING_UP in str(body.get("system") or body["messages"][0])


async def told(client: HostClient, text: str) -> str:
    """Say something and wait for what answers it."""
    posted = await client.post("/api/chats/web:main/messages", {"text": text})
    return await answer_to(client, posted["id"])


async def answer_to(client: HostClient, message_id: str) -> str:
    async with asyncio.timeout(30):
        while True:
            for message in await client.get("/api/chats/web:main/messages?limit=5"):
                if message_id in message["answers"]:
                    return str(message["text"])
            await asyncio.sleep(0.01)


async def test_a_pinned_rule_is_in_every_request_through_fifty_compactions(tmp_path: Path) -> None:
    """The model sums up like the worst one there is, which drops every rule; the chat's own stand in each request all the same.

    The server refuses whatever is illegal, as a result without its call would be.
    """
    requests: list[dict[str, Any]] = []

    def respond(body: dict[str, Any]) -> Reply:
        requests.append(body)
        if is_summary(body):
            return Reply(text="## Aim\nSomething or other.")
        return Reply(text=f"answer {len(requests)} " + "word " * 60, input_tokens=95_000, output_tokens=100)

    async with AnthropicServer(respond=respond, record=False) as server:
        async with running(configured(tmp_path, config(server))) as (host, client):
            folder = host.config.host.data_dir / "workspaces" / "web-main"
            await told(client, "hello")
            assert await told(client, f"/pin {RULE}") == "Pinned as number 1."
            (folder / "AGENTS.md").write_text(f"# Rules\n\n{WRITTEN}\n")
            for number in range(51):
                assert (await told(client, f"message {number} " + "talk " * 50)).startswith("answer")
        [(compactions,)] = rows(tmp_path, """SELECT count(*) FROM entries WHERE json LIKE '%"type":"compaction"%'""")

    talk = [body for body in requests if not is_summary(body)]
    assert compactions >= 50
    assert all(RULE in str(body["system"]) and WRITTEN in str(body["system"]) for body in talk[1:])
    assert max(len(str(body["messages"])) for body in talk) < 6_000
    assert "message 50" in str(talk[-1]["messages"])


def rows(folder: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{folder}/data/state.db?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def test_an_overflow_costs_one_summary_and_one_more_try(tmp_path: Path) -> None:
    """In the words of a real service; the second time the person reads what to do."""
    too_long = Failure(status=400, type="invalid_request_error", message="prompt is too long: 213462 tokens > 200000 maximum")
    script: list[Step] = [Reply(text="a1 " + "word " * 60, input_tokens=40_000), Reply(text="a2", input_tokens=40_000)]
    script += [too_long, Reply(text="the notes"), Reply(text="a3", input_tokens=40_000)]
    script += [too_long, Reply(text="more notes"), too_long]
    async with AnthropicServer(script) as server, running(configured(tmp_path, config(server, keep=100))) as (_, client):
        for text in ("one ", "two "):
            await told(client, text + "talk " * 80)
        assert await told(client, "three " + "talk " * 80) == "a3"
        last = await told(client, "four " + "talk " * 80)

    assert last.startswith("This is more than the model can take in at once")
    assert "prompt is too long" not in last


async def test_compact_works_with_the_built_in_assistant_too(tmp_path: Path) -> None:
    """A newcomer without a key sees an honest summary: what was said, word for word."""
    text = "[compaction]\nkeep_recent_tokens = 60\n"
    async with running(configured(tmp_path, text)) as (_, client):
        for number in range(4):
            await told(client, f"note {number}: " + "the blue house has a red door, " * 10)
        said = await told(client, "/compact")

        assert said.startswith("Summed up:")
    [(entry,)] = rows(tmp_path, """SELECT json FROM entries WHERE json LIKE '%"type":"compaction"%'""")
    assert "note 1" in entry


async def test_the_fallback_answers_when_the_service_is_down(tmp_path: Path) -> None:
    """Over the real wire, with a plain note about it."""
    down = Failure(status=529, type="overloaded_error", message="Overloaded")
    async with AnthropicServer([down] * 2) as server:
        more = 'fallbacks = ["offline/assistant"]\n[retry]\nmax_attempts = 1\nbase_delay_s = 0.01'
        async with running(configured(tmp_path, config(server, more=more))) as (_, client):
            answer = await told(client, "hello")
            shown = [message["text"] for message in await client.get("/api/chats/web:main/messages")]

    assert "offline" in answer
    assert "service/claude-sonnet-5-5 is overloaded, so offline/assistant answers instead." in shown


async def test_a_budget_stops_the_calls_of_a_day(tmp_path: Path) -> None:
    """The price list says what a call cost; the second one is not made."""
    async with AnthropicServer([Reply(text="a1", input_tokens=1_000_000, output_tokens=10)]) as server:
        text = config(server, more="budget_usd_per_day = 0.5").replace("service", "anthropic")
        async with running(configured(tmp_path, text)) as (_, client):
            assert await told(client, "one") == "a1"
            assert (await told(client, "two")).startswith("This chat has spent its budget for today: $")

        assert len(server.requests) == 1


def test_a_fallback_that_nobody_knows_is_an_error_at_the_start(tmp_path: Path) -> None:
    """Not at night, when it would be needed."""
    from bot.config.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match=r"models\.fallbacks\[0\] is 'nobody/model'"):
        configured(tmp_path, "[models]\nfallbacks = ['nobody/model']")


class StallingOpenAI(OpenAIServer):
    """Answers at once; its first summary never comes, and says when it has been asked for."""

    def __init__(self) -> None:
        super().__init__(respond=self._reply)
        self.asked = asyncio.Event()

    def _reply(self, body: dict[str, Any]) -> Reply:
        if not is_summary(body):
            return Reply(text="answer " + "word " * 60, input_tokens=95_000)
        first = not self.asked.is_set()
        self.asked.set()
        return Reply(text="The notes.", fault="stall" if first else None)


async def test_a_kill_in_the_middle_of_a_compaction_loses_nothing(tmp_path: Path) -> None:
    """The message that it was for is answered after the restart, from a conversation that is as it was."""
    async with StallingOpenAI() as server:
        (tmp_path / "pumice.toml").write_text(config(server))
        host = await started(tmp_path)
        async with await HostClient.connect(tmp_path / "data") as client:
            await told(client, "one " + "talk " * 80)
            posted = await client.post("/api/chats/web:main/messages", {"text": "two " + "talk " * 80})
            await asyncio.wait_for(server.asked.wait(), 20)
        host.kill()
        await host.wait()
        before = rows(tmp_path, "SELECT json FROM entries ORDER BY rowid")

        host = await started(tmp_path)
        try:
            async with await HostClient.connect(tmp_path / "data") as client:
                assert (await answer_to(client, posted["id"])).startswith("answer")
        finally:
            host.terminate()
            await host.wait()
        after = rows(tmp_path, "SELECT json FROM entries ORDER BY rowid")

    assert not any('"type":"compaction"' in entry for (entry,) in before)
    assert after[: len(before)] == before
    assert sum('"type":"compaction"' in entry for (entry,) in after) == 1
    assert sum('"role":"user"' in entry for (entry,) in after) == 2


async def started(folder: Path) -> asyncio.subprocess.Process:
    """The host as its users start it, once it can be talked to."""
    with (folder / "host.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot.cli", "run", "--config", str(folder / "pumice.toml"),
            cwd=ROOT, env={"PATH": os.environ["PATH"], "HOME": str(folder)}, stdout=asyncio.subprocess.PIPE, stderr=log,
        )  # fmt: skip
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), 30)
    return process
