"""What a session does for its extensions."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from features.agent.message_maker import MessageMaker
from features.agent.session_models import SessionModels
from features.agent.session_state import SessionState
from features.contracts.agent import Prompt, SessionHost
from features.contracts.errors import ModelMustAct, SessionBusyError
from features.contracts.events import ExtensionError
from features.contracts.extensions import ExecResult
from features.contracts.messages import CustomMessage, Message, UserBlock, message_text
from features.contracts.models import Model, Provider, ThinkingLevel
from features.contracts.processes import ProcessRunner, ProcessSpawnRequest, RunningProcess
from features.contracts.sessions import SessionEntry

if TYPE_CHECKING:
    from features.agent.session import AgentSession

__all__ = ["ExtensionPort"]

_MAX_OUTPUT_CHARS = 1024 * 1024
_SPAWNED_FOR = "extension"


class ExtensionPort:
    """Implements ``SessionPort``. ``bind`` completes it once there is a session.

    Args:
        processes: starts what extensions ask for; None where nothing may be started.
    """

    def __init__(self, state: SessionState, models: SessionModels, processes: ProcessRunner | None) -> None:
        self._state = state
        self._models = models
        self._processes = processes
        self._make = MessageMaker(state.services.clock, state.services.redaction)
        self._session: AgentSession | None = None
        self._host: SessionHost | None = None
        self._early: list[ExtensionError] = []

    def bind(self, session: "AgentSession", host: SessionHost) -> None:
        self._session = session
        self._host = host

    def early_errors(self) -> list[ExtensionError]:
        """What was told before anybody could listen."""
        errors, self._early = self._early, []
        return errors

    # The session, to read

    @property
    def id(self) -> str:
        return self._state.transcript.manager.id

    @property
    def name(self) -> str:
        return self._state.transcript.manager.name

    @property
    def address(self) -> str:
        return self._state.tool_context.address

    @property
    def workspace(self) -> Path:
        return self._state.tool_context.workspace

    @property
    def time_zone(self) -> str:
        return self._state.tool_context.time_zone

    @property
    def model(self) -> Model:
        return self._state.model

    @property
    def thinking(self) -> ThinkingLevel:
        return self._state.thinking

    @property
    def leaf_id(self) -> str | None:
        return self._state.transcript.manager.leaf_id

    @property
    def running(self) -> bool:
        return self._session is not None and self._session.running

    @property
    def queued(self) -> int:
        return len(self._state.queues.steering) + len(self._state.queues.follow_ups)

    @property
    def messages(self) -> Sequence[Message]:
        return self._state.transcript.manager.messages

    @property
    def owner(self) -> bool:
        return self._session is not None and self._session.owner_asked

    def branch(self) -> Sequence[SessionEntry]:
        return self._state.transcript.manager.branch()

    def context_tokens(self) -> int:
        return self._session.context_tokens() if self._session is not None else 0

    def system_prompt(self) -> str:
        return self._state.system_prompt

    # What they add

    def new_id(self) -> str:
        return self._state.services.ids()

    def clean(self, value: Any) -> Any:
        return self._state.services.redaction.data(value)

    def report(self, error: ExtensionError) -> None:
        shown = ExtensionError(extension=error.extension, event=error.event, error=self._state.services.redaction.text(error.error))
        if self._session is None:
            self._early.append(shown)
        else:
            self._state.listeners.emit(shown)

    async def add_entry(self, custom_type: str, data: Any) -> str:
        return await self._state.transcript.add_custom(custom_type, data)

    def new_message(self, custom_type: str, content: str | list[UserBlock], *, display: bool, details: Any) -> CustomMessage:
        return self._make.custom(custom_type, content, display=display, details=details)

    def add_provider(self, provider: Provider, models: Sequence[Model]) -> None:
        self._models.add(provider, models)

    @property
    def brought_models(self) -> Sequence[Model]:
        return self._models.models()

    def remove_provider(self, name: str) -> None:
        self._models.remove(name)

    async def send(
        self, message: CustomMessage, deliver: Literal["now", "steer", "follow_up", "next_turn"], *, extension: str, owner: bool,
        hooked: bool, chained: bool,
    ) -> None:  # fmt: skip
        session, host = self._bound()
        prompt = Prompt(text=message_text(message), custom=message, owner=owner, source="extension", heard=True)
        queues = self._state.queues
        if deliver == "next_turn":
            queues.put_for_next_turn(prompt)
            return
        if not session.running:
            message = await session.looked_at(message) if hooked else message
        if session.running:  # by now
            queues.put(prompt, "follow_up" if deliver == "follow_up" else "steer")
            return
        await session.say(message)
        if chained and not self._state.extensions.follow_ups.chain():
            raise SessionBusyError("the message is in the conversation; extensions have started too many runs in a row to start another")
        going_on = Prompt(text="", owner=owner, source="extension", heard=True)
        await host.prompt(going_on, session_id=self.id, extension=extension, id=self.new_id())

    def follow_up_waits(self) -> None:
        self._bound()[0].follow_up_waits()

    async def start(self, prompt: Prompt, *, extension: str, id: str) -> None:
        await self._bound()[1].prompt(prompt, session_id=self.id, extension=extension, id=id)

    # What they change

    async def set_model(self, reference: str) -> None:
        await self._bound()[0].set_model(reference)

    async def set_thinking(self, level: ThinkingLevel) -> None:
        await self._bound()[0].set_thinking(level)

    async def set_name(self, name: str) -> None:
        await self._bound()[0].set_name(name)

    async def set_label(self, entry_id: str, label: str | None) -> None:
        await self._state.transcript.set_label(entry_id, label or "")

    async def compact(self, instructions: str) -> None:
        await self._bound()[0].compact(instructions)

    async def move_to(self, entry_id: str | None) -> None:
        await self._bound()[0].move_to(entry_id)

    async def fork(self, entry_id: str | None) -> str:
        return await self._bound()[0].fork(entry_id)

    async def new_session(self, name: str) -> str:
        return await self._bound()[1].new_session(name)

    async def switch_session(self, session_id: str) -> None:
        await self._bound()[1].switch_session(session_id)

    async def reload(self) -> None:
        await self._bound()[1].reload()

    async def abort(self, *, wait: bool) -> None:
        session = self._bound()[0]
        if wait:
            await session.abort()
        else:
            session.request_stop()

    # Processes

    async def exec(
        self, argv: Sequence[str], *, timeout: timedelta, cwd: Path | None, environment: Mapping[str, str], owner: bool
    ) -> ExecResult:
        if self._processes is None:
            raise ModelMustAct("no processes can be started in this session")
        context = self._state.tool_context
        request = ProcessSpawnRequest(
            argv=tuple(argv),
            cwd=context.workspace if cwd is None else context.workspace / cwd,
            purpose=_SPAWNED_FOR,
            environment=environment,
            time_zone=context.time_zone,
            workspace=context.workspace,
            owner=owner,
        )
        async with self._processes.start(request) as process:
            output: list[str] = []
            reading = asyncio.create_task(_read(process, output))
            timer = asyncio.create_task(self._state.services.clock.sleep(timeout.total_seconds()))
            try:
                await asyncio.wait({reading, timer}, return_when=asyncio.FIRST_COMPLETED)
                killed = not reading.done()
                if killed:
                    await process.kill()
                code = await process.wait()
                await asyncio.wait({reading})
            finally:
                for task in (reading, timer):
                    task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.gather(reading, timer, return_exceptions=True)
        return ExecResult(output="".join(output), code=code, killed=killed)

    def _bound(self) -> "tuple[AgentSession, SessionHost]":
        if self._session is None or self._host is None:
            raise RuntimeError("the session is still being opened")
        return self._session, self._host


async def _read(process: RunningProcess, output: list[str]) -> None:
    """All of it, so that the process never waits; what is kept is bounded."""
    room = _MAX_OUTPUT_CHARS
    async for piece in process.output():
        if room > 0:
            output.append(piece[:room])
            room -= len(piece)
