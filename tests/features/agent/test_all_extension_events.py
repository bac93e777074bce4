"""Every event of the contract, dispatched by a real session over a real provider and a service on the loopback."""

from pathlib import Path
from random import Random

import pytest

from features.agent import AgentSession, AgentSessionFactory, AgentSessionOptions, RetryOptions
from features.compaction import CompactionOptions
from features.contracts.errors import PumiceError
from features.contracts.extension_events import (
    EXTENSION_EVENTS,
    BeforeProviderHeaders,
    BeforeProviderPayload,
    ProviderResponded,
)
from features.contracts.extensions import ExtensionApi, ExtensionSpec
from features.contracts.testing import FakeClock, sequential_ids
from features.contracts.tools import ToolContext
from features.extensions import session_spawn_hook
from features.models import ModelRegistry, ProviderConfig
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.sessions import MemorySessionStore
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolOptions, ToolRegistry
from tests.features.agent.recording import Recorder, extension
from tests.features.agent.rig import say
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Call, Failure, Reply

LONG = "a long tale of what was done here " * 60


class House:
    """A session with its real tools and providers; ``gone`` is a service that nobody can reach."""

    def __init__(self, folder: Path, server: AnthropicServer) -> None:
        clock, ids, redactor = FakeClock(), sequential_ids(), SecretRedactor()
        redactor.add(server.api_key, name="key")
        configs = [
            ProviderConfig(name="anthropic", kind="anthropic", api_key=server.api_key, base_url=server.url),
            ProviderConfig(name="gone", kind="anthropic", api_key=server.api_key, base_url="http://127.0.0.1:9"),
        ]
        policy = ProcessSpawnPolicy(
            ProcessPolicyOptions(), redactor=redactor, environ={"PATH": "/usr/bin:/bin"}, hooks=(session_spawn_hook,)
        )
        self.processes = ProcessRunner(policy, redactor)
        self.models = ModelRegistry(configs, clock=clock, ids=ids, max_concurrency=4)
        self.folder = folder
        self.store = MemorySessionStore()
        self.factory = AgentSessionFactory(
            store=self.store,
            models=self.models,
            prompts=SystemPromptBuilder(),
            redactor=redactor,
            clock=clock,
            ids=ids,
            random=Random(1),
            retry=RetryOptions(max_attempts=0),
            compaction=CompactionOptions(keep_recent_tokens=50),
        )

    async def open(self, *extensions: ExtensionSpec) -> AgentSession:
        tools = ToolRegistry.built_in(ToolOptions(processes=self.processes, send=None))
        context = ToolContext(address="console:test", session_id="", workspace=self.folder, scratch=self.folder)
        options = AgentSessionOptions(
            scope="console:test",
            tools=tools,
            tool_context=context,
            chat="A chat.",
            model="anthropic/claude-sonnet-5-5",
            extensions=extensions,
            processes=self.processes,
        )
        return await self.factory.create(options)


ORDER = [
    "session_start",
    "resources_discover",
    "input",
    "before_agent_start",
    "agent_start",
    "turn_start",
    "message_start(user)",
    "message_end(user)",
    "context",
    "before_provider_request",
    "before_provider_payload",
    "before_provider_headers",
    "provider_response",
    "message_start(assistant)",
    "message_end(assistant)",
    "tool_execution_start(t1)",
    "tool_call(t1)",
    "process_spawn",
    "tool_result(t1)",
    "tool_execution_end(t1)",
    "message_start(toolResult)",
    "message_end(toolresult)",
    "turn_end",
    "turn_start",
    "context",
    "before_provider_request",
    "before_provider_payload",
    "before_provider_headers",
    "provider_response",
    "message_start(assistant)",
    "message_end(assistant)",
    "turn_end",
    "agent_end",
    "agent_settled",
]
_GROWING = ("message_update", "tool_execution_update")


async def test_every_event_is_told_and_those_of_a_run_once_and_in_order(tmp_path: Path) -> None:
    """The whole list of the contract, and nothing beside it."""
    heard = Recorder()
    script: list[Reply | Failure] = [
        Reply(text="I look.", calls=[Call(id="t1", name="bash", arguments={"command": "echo tea"})]),
        Reply(text=LONG),
        Reply(text=LONG),
        Failure(status=400),
        Reply(text="A summary."),
        Reply(text="Another."),
        Failure(status=400),
    ]
    async with AnthropicServer(script) as server:
        house = House(tmp_path, server)
        session = await house.open(heard.spec())
        await session.prompt(say("make tea", owner=True))
        assert [word for word in heard.words if not word.startswith(_GROWING)] == ORDER

        await session.prompt(say("more"))
        with pytest.raises(PumiceError):
            await session.compact()
        await session.compact()
        await session.moves.ask_to_delete("other")
        await session.moves.ask_to_switch("new", None)
        await session.prompt(say("fails"))
        await session.moves.move_to(session.manager.branch()[2].id)
        await session.fork()
        await session.moves.switched_from("resume", "other")
        await session.set_model("gone/claude-sonnet-5-5")
        await session.prompt(say("nobody there"))
        await session.close()
        await house.models.close()

    assert {event.name for event in EXTENSION_EVENTS} - {word.partition("(")[0] for word in heard.words} == set()


async def test_headers_and_payload_are_changed_and_authentication_is_neither_seen_nor_taken(tmp_path: Path) -> None:
    """What an extension adds arrives; the key stays the host's."""
    seen: list[dict[str, str]] = []

    async def activate(api: ExtensionApi) -> None:
        async def headers(event: BeforeProviderHeaders) -> None:
            seen.append(dict(event.headers))
            event.headers["x-trace"] = "t-1"
            event.headers["X-Api-Key"] = "stolen"
            event.headers["Authorization"] = "stolen"

        async def payload(event: BeforeProviderPayload) -> None:
            event.payload["max_tokens"] = 77

        async def responded(event: ProviderResponded) -> None:
            statuses.append(event.status)

        api.on(BeforeProviderHeaders, headers)
        api.on(BeforeProviderPayload, payload)
        api.on(ProviderResponded, responded)

    statuses: list[int] = []
    async with AnthropicServer([Reply(text="hello")]) as server:
        house = House(tmp_path, server)
        session = await house.open(extension(activate))
        outcome = await session.prompt(say("hello"))
        await session.close()
        await house.models.close()
        request = server.requests[0]

    assert outcome is not None
    assert (outcome.outcome, statuses) == ("success", [200])
    assert request.body["max_tokens"] == 77
    assert request.headers["x-trace"] == "t-1"
    assert {request.headers.get("x-api-key"), request.headers.get("authorization")} == {None, f"Bearer {server.api_key}"}
    assert "stolen" not in str(dict(request.headers))
    assert server.api_key not in str(seen)
    assert not {"x-api-key", "authorization"} & {name.lower() for name in seen[0]}
