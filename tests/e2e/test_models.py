"""Each kind of provider through the whole host."""

import json
from pathlib import Path

from tests.e2e.rig import configured, running
from tests.e2e.test_host import until_answered
from tests.environment import needs_package
from tests.features.models.claude import FakeClaude
from tests.servers.google import GoogleServer
from tests.servers.responses import ResponsesServer
from tests.servers.script import Call, Reply

RUN_PWD = Call(name="bash", arguments={"command": "pwd"})


async def test_gemini_and_the_responses_api_run_tools_in_one_chat(tmp_path: Path) -> None:
    """The second model reads what the first did."""
    steps = [Reply(text="I look.", calls=(RUN_PWD,)), Reply(text="Done by Google.")]
    async with GoogleServer(steps) as google, ResponsesServer([Reply(calls=(RUN_PWD,)), Reply(text="Done by OpenAI.")]) as openai:
        text = f"""
models.default = "google/gemini-3.8-flash"
[providers.google]
api_key = "{google.api_key}"
base_url = "{google.url}"
[providers.openai]
api_key = "{openai.api_key}"
base_url = "{openai.url}/v1"
"""
        async with running(configured(tmp_path, text)) as (_, client):
            said = []
            for prompt in ("where are you?", "/model openai/gpt-5.4", "and you?"):
                posted = await client.post("/api/chats/web:main/messages", {"text": prompt})
                said.append((await until_answered(client, posted["id"]))["text"])

    assert "Done by Google." in said[0]
    assert "Done by OpenAI." in said[2]
    assert "web-main" in json.dumps(google.request["contents"])
    assert "Done by Google." in json.dumps(openai.request["input"])


@needs_package("claude_agent_sdk", "claude-code")
async def test_claude_code_runs_the_agents_tools_in_the_chats_folder(tmp_path: Path) -> None:
    """With their policy and in their sandbox, not by itself; a prompt later the same process goes on."""
    folder = tmp_path / "fake"
    folder.mkdir()
    call = {"name": "bash", "arguments": {"command": "pwd; echo key=$ANTHROPIC_API_KEY"}}
    claude = FakeClaude(folder, {"text": "I look.", "calls": [call]}, {"text": "In your folder."}, {"text": "Still here."})
    text = f"""
models.default = "claude/claude-sonnet-5-5"
[providers.claude]
kind = "claude-code"
command = "{claude.program}"
"""
    async with running(configured(tmp_path, text)) as (_, client):
        said = []
        for prompt in ("where are you?", "and now?"):
            posted = await client.post("/api/chats/web:main/messages", {"text": prompt})
            said.append((await until_answered(client, posted["id"]))["text"])

    assert "In your folder." in said[0]
    assert "Still here." in said[1]
    (result,) = claude.log("result")
    assert "web-main" in result["content"][0]["text"]
    assert "key=\n" in result["content"][0]["text"] + "\n"
    assert len(claude.log("start")) == 1
    assert claude.running() == set()
