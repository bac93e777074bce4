"""The whole conversation with the model that ships with the host, its registry, tools and stores; nothing is a double but the clock."""

from pathlib import Path
from random import Random

from features.agent import AgentSessionFactory, AgentSessionOptions
from features.contracts.testing import FakeClock, sequential_ids
from features.contracts.tools import ToolContext
from features.models import ModelRegistry
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore
from features.storage import Database
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolOptions, ToolRegistry
from tests.features.agent.rig import check_results, say


async def test_the_offline_assistant_works_in_the_workspace(tmp_path: Path) -> None:
    """What a newcomer tries first: write a file, read it, run a command."""
    clock, ids, redactor = FakeClock(), sequential_ids(), SecretRedactor()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Database(tmp_path / "state.db", [SESSION_MIGRATIONS]) as database:
        models = ModelRegistry([], clock=clock, ids=ids, max_concurrency=4)
        factory = AgentSessionFactory(
            store=DatabaseSessionStore(database),
            models=models,
            prompts=SystemPromptBuilder(),
            redactor=redactor,
            clock=clock,
            ids=ids,
            random=Random(1),
        )
        policy = ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ={"PATH": "/usr/bin:/bin"})
        tools = ToolRegistry.built_in(ToolOptions(processes=ProcessRunner(policy, redactor), send=None))
        context = ToolContext(address="console:test", session_id="", workspace=workspace, scratch=tmp_path)
        options = AgentSessionOptions(scope="console:test", tools=tools, tool_context=context, chat="A chat.", model="offline/assistant")
        session = await factory.create(options)
        answers = [await session.prompt(say(text, owner=True)) for text in ("write a.txt: tea", "read a.txt", "run: cat a.txt")]
        await session.close()
        await models.close()

    assert (workspace / "a.txt").read_text().strip() == "tea"
    assert [answer is not None and answer.outcome for answer in answers] == ["success"] * 3
    assert all(answer is not None and "tea" in answer.text for answer in answers[1:])
    check_results(session.manager.messages)
