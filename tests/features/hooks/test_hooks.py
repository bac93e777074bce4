"""Hooks: what commands and addresses are told, and that nothing they do harms anybody."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from features.contracts.extension_events import AgentEnded, AgentSettled, InputReceived, ProcessSpawning, ToolCalled, ToolExecutionStarted
from features.contracts.messages import ImageBlock, ToolCall, UserMessage
from features.contracts.processes import ProcessSpawnEvent, ProcessSpawnRequest
from features.contracts.testing import FakeClock, sequential_ids
from features.extensions.testing import LoneApi
from features.hooks import Hook, Hooks
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from tests.servers.serving import serve

SECRET = "sk-0123456789abcdef"


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Where hooks of a test leave what they were told."""
    return tmp_path / "told"


def command(told: Path, code: str = "") -> tuple[str, ...]:
    """A program that leaves a line with its environment, its folder and its payload, and then does ``code``."""
    program = f"""
import json, os, sys, time
facts = {{name: value for name, value in os.environ.items()}}
payload = open(facts["PUMICE_PAYLOAD"]).read()
with open({str(told)!r}, "a") as file:
    file.write(json.dumps([facts, os.getcwd(), payload]) + "\\n")
{code}
"""
    return (sys.executable, "-c", program)


def said(told: Path) -> list[tuple[dict[str, str], str, dict[str, Any]]]:
    lines = told.read_text().splitlines() if told.exists() else []
    return [(facts, cwd, json.loads(payload)) for facts, cwd, payload in map(json.loads, lines)]


@asynccontextmanager
async def hooked(folder: Path, *hooks: Hook, environ: dict[str, str] | None = None) -> AsyncIterator[LoneApi]:
    """Leaving waits until everything has been told."""
    redactor = SecretRedactor()
    redactor.add(SECRET, name="key")
    policy = ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ={**os.environ, **(environ or {})})
    runner = ProcessRunner(policy, redactor)
    async with Hooks(hooks, processes=runner, redactor=redactor, clock=FakeClock(), ids=sequential_ids()) as working:
        (folder / "workspace" / ".pumice" / "tmp").mkdir(parents=True)
        yield await LoneApi(working.spec().activate, workspace=folder / "workspace").activated()


async def test_a_command_finds_facts_and_a_payload(tmp_path: Path, told: Path) -> None:
    """In the chat's folder and zone, with the environment that the policy gives and no more."""
    async with hooked(tmp_path, Hook(event="tool_call", argv=command(told)), environ={"MY_API_KEY": "x"}) as session:
        call = ToolCall(id="call-1", name="bash", arguments={"command": "ls"})
        assert [priority for priority, _, _ in session.handlers] == [-1_000_000], "hooks hear what others have made of it"
        await session.happens(ToolCalled(call, {"command": f"echo {SECRET}"}, owner=True))

    ((facts, cwd, payload),) = said(told)
    assert {name: value for name, value in facts.items() if name.startswith("PUMICE_") and name != "PUMICE_PAYLOAD"} == {
        "PUMICE_EVENT": "tool_call", "PUMICE_SESSION_ID": "session-1", "PUMICE_CHAT": "telegram:1",
        "PUMICE_WORKSPACE": str(tmp_path / "workspace"), "PUMICE_MODEL": "scripted/one", "PUMICE_THINKING": "off",
        "PUMICE_TOOL_NAME": "bash", "PUMICE_TOOL_CALL_ID": "call-1",
    }  # fmt: skip
    assert (facts["TZ"], cwd, "MY_API_KEY" in facts) == ("Europe/Vienna", str(tmp_path / "workspace"), False)
    assert payload["data"] == {
        "refusal": None, "owner": True, "arguments": {"command": "echo [REDACTED]"},
        "call": {"id": "call-1", "name": "bash", "arguments": {"command": "ls"}, "thoughtSignature": None, "invalidArguments": None,
                 "type": "toolCall"},
    }  # fmt: skip
    assert {name: payload[name] for name in ("event", "chat", "session_name", "at")} == {
        "event": "tool_call", "chat": "telegram:1", "session_name": "Rome", "at": "2026-01-05T09:00:00+00:00",
    }  # fmt: skip
    assert list((tmp_path / "workspace" / ".pumice" / "tmp").iterdir()) == [], "the payload is gone"


async def test_facts_are_redacted_and_short(tmp_path: Path, told: Path) -> None:
    """A model may call a tool by any name; a variable has no end of text and no null in it."""
    async with hooked(tmp_path, Hook(event="tool_execution_start", argv=command(told))) as session:
        await session.happens(ToolExecutionStarted(ToolCall(id="x" * 5000, name=f"a\0 {SECRET} \udcff", arguments={})))

    facts = said(told)[0][0]
    assert (facts["PUMICE_TOOL_NAME"], len(facts["PUMICE_TOOL_CALL_ID"])) == ("a [REDACTED] ?", 2000)


async def test_events_of_one_hook_arrive_in_order_and_others_do_not(tmp_path: Path, told: Path) -> None:
    async with hooked(tmp_path, Hook(event="input", argv=command(told))) as session:
        for number in range(3):
            await session.happens(InputReceived(f"text {number}", (), "person"))
            await session.happens(AgentSettled("success"))

    assert [payload["data"]["text"] for _, _, payload in said(told)] == ["text 0", "text 1", "text 2"]


async def test_what_is_told_is_what_was_then(tmp_path: Path, told: Path) -> None:
    """The event goes on changing; large things are cut, and pictures are only mentioned."""
    async with hooked(tmp_path, Hook(event="input", argv=command(told))) as session:
        event = InputReceived("x" * 5000 + SECRET, (ImageBlock(data="QUJD" * 1000, mime_type="image/png"),), "person")
        await session.happens(event)
        event.text = "changed"

    data = said(told)[0][2]["data"]
    assert data["text"].startswith("x" * 2000 + "...")
    assert SECRET not in data["text"]
    assert data["images"] == [{"type": "image", "mimeType": "image/png", "base64Chars": 4000}]


async def test_a_long_history_is_cut_to_its_end(tmp_path: Path, told: Path) -> None:
    """A payload has a size; the latest is what matters."""
    async with hooked(tmp_path, Hook(event="agent_end", argv=command(told))) as session:
        await session.happens(AgentEnded([UserMessage(content=f"m{number}", timestamp=1) for number in range(300)], "success"))
        await session.happens(AgentEnded([UserMessage(content="y" * 100_000, timestamp=1) for _ in range(300)], "success"))

    first, second = (payload["data"]["messages"] for _, _, payload in said(told))
    assert first[0] == "250 earlier ones"
    assert first[-1] == {"content": "m299", "timestamp": 1, "role": "user"}
    assert len(json.dumps(second)) < 262_144


async def test_the_environment_of_a_process_is_not_told(tmp_path: Path, told: Path) -> None:
    """Its names alone: the values are the child's business."""
    request = ProcessSpawnRequest(argv=("true",), cwd=tmp_path, purpose="bash")
    spawn = ProcessSpawnEvent(request=request, argv=("true",), cwd=tmp_path, environment={"B": "inner", "A": "x"})
    async with hooked(tmp_path, Hook(event="process_spawn", argv=command(told))) as session:
        await session.happens(ProcessSpawning(spawn))

    assert said(told)[0][2]["data"] == {"argv": ["true"], "cwd": str(tmp_path), "environment": ["A", "B"], "purpose": "bash"}


async def test_a_failing_command_is_said_once_and_when_it_works_again(tmp_path: Path, told: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And it harms nobody: the event goes its way."""
    caplog.set_level(logging.INFO, "pumice.hooks")
    sick = tmp_path / "sick"
    sick.touch()
    code = f"print('no\\n luck {SECRET}'); sys.exit(3 if os.path.exists({str(sick)!r}) else 0)"
    async with hooked(tmp_path, Hook(event="agent_settled", argv=command(told, code))) as session:
        for number in range(3):
            event = AgentSettled("success")
            await session.happens(event)
            if number == 1:
                async with asyncio.timeout(20):
                    while len(said(told)) < 2:  # noqa: ASYNC110 - another process writes it
                        await asyncio.sleep(0.01)
                sick.unlink()

    assert [record.message for record in caplog.records] == ["hook failing", "hook works again"]
    facts = caplog.records[0].__dict__["facts"]
    assert facts["reason"] == "exited 3: no luck [REDACTED]"
    assert facts["event"] == "agent_settled"


@pytest.mark.parametrize("argv", [("no-such-program-anywhere",), ("/",)])
async def test_a_command_that_cannot_start_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, argv: tuple[str, ...]) -> None:
    async with hooked(tmp_path, Hook(event="agent_settled", argv=argv)) as session:
        await session.happens(AgentSettled("success"))

    assert "cannot start" in caplog.records[0].__dict__["facts"]["reason"]


async def test_a_command_that_hangs_is_ended(tmp_path: Path, told: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After its own time; and meanwhile the session does not wait."""
    hook = Hook(event="agent_settled", argv=command(told, "time.sleep(100)"), timeout=timedelta(seconds=0.4))
    async with hooked(tmp_path, hook) as session:
        async with asyncio.timeout(0.3):
            await session.happens(AgentSettled("success"))

    assert caplog.records[0].__dict__["facts"]["reason"] == "stopped after 0.4 s"
    assert list((tmp_path / "workspace" / ".pumice" / "tmp").iterdir()) == []


async def test_events_that_the_queue_cannot_hold_are_dropped_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Memory is bounded however slow the hook is, and the host's end does not wait for it for long."""
    async with hooked(tmp_path, Hook(event="input", argv=("sleep", "60"), timeout=timedelta(seconds=60))) as session:
        for number in range(200):
            await session.happens(InputReceived(str(number), (), "person"))
        (lane,) = [cast("Any", handler).args[1] for _, _, handler in session.handlers]
        assert len(lane._waiting) == 64

    assert [record.message for record in caplog.records].count("hook is too slow; events are dropped") == 1


class Receiver:
    """A web service that keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 204
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, request: Request) -> Response:
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        await self.gate.wait()
        return Response(status_code=self.status, headers={"location": "/elsewhere"})


@pytest.fixture
async def receiver() -> AsyncIterator[tuple[Receiver, str]]:
    receiver = Receiver()
    async with serve(Starlette(routes=[Route("/hook", receiver.__call__, methods=["POST"])])) as address:
        yield receiver, f"{address}/hook?key={SECRET}"


async def test_an_address_gets_the_same_as_json(tmp_path: Path, receiver: tuple[Receiver, str]) -> None:
    service, url = receiver
    async with hooked(tmp_path, Hook(event="input", url=url)) as session:
        await session.happens(InputReceived(f"my key is {SECRET}", (), "person"))

    assert service.bodies[0]["data"]["text"] == "my key is [REDACTED]"
    assert (service.headers[0]["content-type"], service.headers[0]["x-pumice-event"]) == ("application/json", "input")


@pytest.mark.parametrize(
    ("status", "reason"), [(500, "answered with status 500"), (302, "answered with status 302"), (None, "no answer in 0.2 s")]
)
async def test_an_address_that_fails_is_only_logged(
    tmp_path: Path, receiver: tuple[Receiver, str], caplog: pytest.LogCaptureFixture, status: int | None, reason: str
) -> None:
    """Without the rest of the address, in which a key may be; and nobody is sent on to another one."""
    service, url = receiver
    if status is None:
        service.gate.clear()
    else:
        service.status = status
    async with hooked(tmp_path, Hook(event="agent_settled", url=url, timeout=timedelta(seconds=0.2 if status is None else 5))) as session:
        await session.happens(AgentSettled("success"))

    service.gate.set()
    assert caplog.records[0].__dict__["facts"] | {"error_id": ""} == {
        "event": "agent_settled", "to": "127.0.0.1", "reason": reason, "error_id": "",
    }  # fmt: skip


async def test_nobody_at_an_address_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with hooked(tmp_path, Hook(event="agent_settled", url="http://127.0.0.1:9/")) as session:
        await session.happens(AgentSettled("success"))

    assert caplog.records[0].__dict__["facts"]["reason"].startswith("could not be reached")


def test_an_event_that_there_is_not_is_refused(tmp_path: Path) -> None:
    runner = cast("Any", None)
    with pytest.raises(ValueError, match="no event 'agent_ended'"):
        Hooks(
            [Hook(event="agent_ended", argv=("x",))], processes=runner, redactor=SecretRedactor(), clock=FakeClock(), ids=sequential_ids()
        )
