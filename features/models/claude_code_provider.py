"""Claude Code as a provider: its own login and its own way to ask Claude, the agent's own tools."""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from features.contracts.clock import unix_ms
from features.contracts.messages import AssistantMessage, Usage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import BlockEvent, PartialMessage, StreamDone, StreamEvent, StreamFailed, StreamStarted
from features.models.catalogue import Catalogue
from features.models.claude_code_program import claude_environment, claude_program
from features.models.claude_code_prompt import new_results, new_words, opening
from features.models.config import ProviderConfig
from features.models.dialect import ProviderServices
from features.models.failures import UpstreamFailure
from features.models.normalise import Target

if TYPE_CHECKING:
    from features.models.claude_code_process import ClaudeProcess, ClaudeTurn

__all__ = ["ClaudeCodeProvider"]

log = logging.getLogger("pumice.models")
_MOST_LIVE = 4
"""Processes at a time; each takes about 200 MB."""
_IDLE_S = 300.0
_API = "claude-code"


class ClaudeCodeProvider:
    """Implements ``Provider``.

    A process holds the conversation of the session that it served last, so that the next call tells it only what is new. It ends when
    another session needs its place, after some idle time, and when the session turns out to be another than it knows: then a fresh one
    reads the conversation as text. Losing it costs time and cached tokens, no more.

    Args:
        most_live: processes at a time, at work and idle.
    """

    def __init__(
        self,
        config: ProviderConfig,
        catalogue: Catalogue,
        services: ProviderServices,
        *,
        most_live: int = _MOST_LIVE,
        idle_s: float = _IDLE_S,
    ) -> None:
        self.name = config.name
        self._config = config
        self._catalogue = catalogue
        self._services = services
        self._most_live = most_live
        self._idle_s = idle_s
        self._seats = asyncio.Semaphore(most_live)
        self._working = 0
        self._idle: OrderedDict[str, tuple[ClaudeProcess, asyncio.Task[None]]] = OrderedDict()
        self._endings: set[asyncio.Task[None]] = set()

    async def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = PartialMessage(api=_API, provider=self.name, model=model.id, timestamp=unix_ms(self._services.clock.now()))
        request = msgspec.structs.replace(request, messages=list(request.messages))  # the list is the agent's and may grow
        yield StreamStarted(partial=partial)
        turn: ClaudeTurn | None = None
        process: ClaudeProcess | None = None
        message: AssistantMessage | None = None
        try:
            async with self._services.slots, self._seats:
                self._working += 1
                try:
                    process = await self._ready(model, request)
                    turn = _modules().ClaudeTurn(partial, self._price(model))
                    async with aclosing(self._follow(process, turn)) as events:
                        async for event in events:
                            yield event
                    message = partial.finish(turn.stop)
                    self._keep(request, process, message, turn)
                finally:
                    self._working -= 1
                    if process is not None and message is None:
                        self._end(process)
        except Exception as error:
            failure = self._understand(error)
            if turn is not None:
                turn.answer.abandon()
            failed = partial.finish("error", error_message=str(failure))
            yield StreamFailed(message=failed, kind=failure.kind, retry_after_s=failure.retry_after_s)
            return
        yield StreamDone(message=message)

    async def close(self) -> None:
        while self._idle:
            self._evict()
        if self._endings:
            await asyncio.wait(set(self._endings))

    async def _ready(self, model: Model, request: ModelRequest) -> "ClaudeProcess":
        """A process that has been told all of the request and is about to answer."""
        sdk = await asyncio.to_thread(_modules)
        program = claude_program(self._config)
        if program is None:
            raise UpstreamFailure(
                "invalid", f"there is no claude program; install Claude Code, or set providers.{self.name}.command to where it is"
            )
        launch = sdk.Launch.of(model, request)
        target = self._target(model, request)
        held = self._take(request.session_id)
        if held is not None:
            goes_on = False
            try:
                goes_on = held.launch == launch and await self._go_on(held, request, target)
            finally:
                if not goes_on:
                    self._end(held)
            if goes_on:
                return held
        while self._idle and len(self._idle) + self._working > self._most_live:
            self._evict()
        fresh: ClaudeProcess = sdk.ClaudeProcess(program, claude_environment(self._config, os.environ), launch)
        try:
            await fresh.start()
            await fresh.say(opening(request.messages, target))
        except BaseException:
            self._end(fresh)
            raise
        fresh.known = request.messages
        return fresh

    async def _go_on(self, process: "ClaudeProcess", request: ModelRequest, target: Target) -> bool:
        """Tell a process what is new; False where the session is not the one that it knows."""
        known, answer, messages = len(process.known), process.answer, request.messages
        same = len(messages) > known + 1 and list(messages[:known]) == list(process.known)
        own = messages[known] if same else None
        if answer is None or not isinstance(own, AssistantMessage) or own.content != answer.content:
            return False
        new = messages[known + 1 :]
        results = new_results(answer, new, target) if process.waits else None
        words = None if process.waits else new_words(new, target)
        if results is None and words is None:
            return False
        process.known = messages
        try:
            if words is not None:
                await process.say(words)
            else:
                process.give(results or {})
            return await process.hear(self._services.limits.first_event_s)  # it may have died meanwhile, which nothing else would show
        except Exception as error:
            if not _of_the_sdk(error):
                raise
            return False

    async def _follow(self, process: "ClaudeProcess", turn: "ClaudeTurn") -> AsyncGenerator[BlockEvent, None]:
        limits = self._services.limits
        while not turn.ended:
            patience = limits.idle_s if turn.speaking else limits.first_event_s
            message = await process.next(patience)
            if message is None:
                raise UpstreamFailure("network", "claude ended before the answer did")
            for event in turn.take(message):
                yield event

    def _keep(self, request: ModelRequest, process: "ClaudeProcess", answer: AssistantMessage, turn: "ClaudeTurn") -> None:
        if not request.session_id or answer.stop_reason == "length":  # it would go on by itself
            self._end(process)
            return
        process.answer, process.waits = answer, turn.stop == "toolUse"
        older = self._take(request.session_id)
        if older is not None:
            self._end(older)
        self._idle[request.session_id] = (process, asyncio.create_task(self._end_when_idle(request.session_id)))

    async def _end_when_idle(self, session_id: str) -> None:
        await self._services.clock.sleep(self._idle_s)
        process, _ = self._idle.pop(session_id)
        self._end(process)

    def _take(self, session_id: str) -> "ClaudeProcess | None":
        held = self._idle.pop(session_id, None)
        if held is None:
            return None
        held[1].cancel()
        return held[0]

    def _evict(self) -> None:
        """End the one that has been idle longest."""
        process = self._take(next(iter(self._idle)))
        if process is not None:
            self._end(process)

    def _end(self, process: "ClaudeProcess") -> None:
        process.kill()
        ending = asyncio.create_task(process.close())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def _target(self, model: Model, request: ModelRequest) -> Target:
        return Target(
            provider=self.name,
            api=_API,
            model=model.id,
            images="image" in model.input,
            thinking=False,
            time_zone=request.time_zone,
            id_limit=64,
        )

    def _price(self, model: Model) -> Callable[[Usage], Usage]:
        def price(usage: Usage) -> Usage:
            return msgspec.structs.replace(usage, cost=self._catalogue.cost(model, usage, self._services.clock.now()))

        return price

    def _understand(self, error: Exception) -> UpstreamFailure:
        if isinstance(error, UpstreamFailure):
            return error
        if isinstance(error, ImportError):
            return UpstreamFailure("invalid", f"the claude-agent-sdk package is not installed ({error}); install pumice[claude-code]")
        if isinstance(error, OSError):
            return UpstreamFailure("invalid", f"the claude program cannot be started: {error}")
        if _of_the_sdk(error):
            return UpstreamFailure("server", str(error))
        error_id = self._services.ids()
        log.error("model call broke", exc_info=error, extra={"facts": {"provider": self.name, "error_id": error_id}})
        return UpstreamFailure("unknown", f"unexpected {type(error).__name__} (error {error_id})")


def _of_the_sdk(error: Exception) -> bool:
    return type(error).__module__.startswith("claude_agent_sdk")


def _modules() -> Any:
    """What stands on the SDK, imported on a worker thread at first, for that takes half a second."""
    from features.models import claude_code_process

    return claude_code_process
