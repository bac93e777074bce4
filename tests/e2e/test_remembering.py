"""Memory, skills and the web through the whole host."""

import asyncio
from pathlib import Path

from bot.http.client import HostClient
from tests.e2e.rig import configured, running, with_anthropic
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Call, Reply


async def said(client: HostClient, text: str, chat: str = "web:main") -> str:
    posted = await client.post(f"/api/chats/{chat}/messages", {"text": text})
    async with asyncio.timeout(20):
        while True:
            for message in await client.get(f"/api/chats/{chat}/messages"):
                if posted["id"] in message["answers"]:
                    return str(message["text"])
            await asyncio.sleep(0.02)


async def test_the_offline_assistant_remembers_by_the_same_tool(tmp_path: Path) -> None:
    """It is in the file, in the command, and in the next session."""
    async with running(configured(tmp_path)) as (host, client):
        assert await said(client, "remember that I like tea") == "Noted: I like tea"
        assert "- I like tea" in (host.config.host.data_dir / "workspaces" / "web-main" / "MEMORY.md").read_text()
        assert "1. I like tea" in await said(client, "/memory")
        await said(client, "/new")
        assert "I like tea" in await said(client, "what do you remember?")
        await said(client, "/memory clear yes")
        assert "I like tea" not in await said(client, "what do you remember?")


async def test_a_real_model_is_offered_all_of_it_and_this_machine_is_not_the_internet(tmp_path: Path) -> None:
    """Host-wide instructions, memory and skills in the prompt; the guard of web_fetch as it ships; the log of this chat alone."""
    calls = [
        Call(name="web_fetch", arguments={"url": "http://localhost:1/"}),
        Call(name="history", arguments={"query": "elsewhere"}),
        Call(name="memory", arguments={"action": "add", "text": "for all", "scope": "everywhere"}),
    ]
    steps = [Reply(text="noted elsewhere"), Reply(calls=calls), Reply(text="done")]
    data = tmp_path / "data"
    (data / "skills" / "deploy").mkdir(parents=True)
    (data / "skills" / "deploy" / "SKILL.md").write_text("---\nname: deploy\ndescription: For deploying.\n---\nbody")
    (data / "AGENTS.md").write_text("Rule of the host.")
    (data / "MEMORY.md").write_text("- known everywhere\n")
    async with AnthropicServer(steps) as model:
        config = configured(tmp_path, with_anthropic(model) + "[memory]\nhost_wide = true\n[host]\ndata_dir = 'data'\n")
        assert not any("memory" in warning for warning in config.warnings)
        async with running(config) as (_, client):
            assert await said(client, "secret of elsewhere", "web:other") == "noted elsewhere"
            assert await said(client, "look") == "done"
            assert "deploy" in [command["name"] for command in await client.get("/api/commands")]
    prompt = str(model.requests[1].body["system"])
    results = {block["tool_use_id"]: str(block["content"]) for block in model.request["messages"][-1]["content"]}

    assert {"web_fetch", "memory", "history"} <= {tool["name"] for tool in model.request["tools"]}
    for part in ("Rule of the host.", "<name>deploy</name>", "known everywhere", "# How to work"):
        assert part in prompt
    fetched, history, memory = results.values()
    assert "public internet only" in fetched
    assert "nothing found" in history
    assert "Noted." in memory
    assert (data / "MEMORY.md").read_text() == "- known everywhere\n- for all\n"
