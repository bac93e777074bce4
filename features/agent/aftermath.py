"""What comes after a run: extensions hear that it has settled, and what they wanted done then is done."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from features.agent.session_state import SessionState
from features.contracts.agent import Prompt, SessionHost
from features.contracts.errors import PumiceError
from features.contracts.events import ExtensionError
from features.contracts.extension_events import AgentSettled
from features.contracts.messages import CustomMessage
from features.extensions import ExtensionRunner

__all__ = ["Aftermath"]

log = logging.getLogger("pumice.agent")


class Aftermath:
    """At most one at a time; a run that begins meanwhile waits for it.

    Args:
        say: stores an extension's message that came too late for the run.
    """

    def __init__(self, state: SessionState, host: SessionHost, *, say: Callable[[CustomMessage], Awaitable[None]]) -> None:
        self.owner = False
        self._state = state
        self._say = say
        self._host = host
        self._task: asyncio.Task[None] | None = None
        self._told_of_limit = False

    @property
    def extensions(self) -> ExtensionRunner:
        return self._state.extensions

    @property
    def going_on(self) -> bool:
        return self._task is not None

    def begin(self, outcome: Literal["success", "error", "aborted"], *, owner: bool) -> None:
        """A run has settled. Costs nothing where nobody is interested."""
        if self.extensions.wants(AgentSettled) or len(self.extensions.follow_ups) or self._state.queues.has_custom:
            self.owner = owner
            self._spawn(self._after(outcome))

    def follow_up_waits(self) -> None:
        """A follow-up has come while no run goes on."""
        if self._task is None:
            self._spawn(self._follow_up())

    async def over(self) -> None:
        """Wait until nothing of it goes on."""
        while self._task is not None:
            await asyncio.wait({self._task})

    def _spawn(self, work: Awaitable[None]) -> None:
        async def carry() -> None:
            try:
                await work
            except PumiceError as error:
                log.warning("what extensions wanted after a run was not done", extra={"facts": {"error": str(error)}})
            except Exception:
                log.exception("aftermath broke")
            finally:
                self.owner = False
                self._task = None

        self._task = asyncio.create_task(carry(), name=f"aftermath {self._state.transcript.manager.id}")

    async def _after(self, outcome: Literal["success", "error", "aborted"]) -> None:
        await self.extensions.dispatch(AgentSettled(outcome))
        if outcome != "success":
            return  # whoever stopped it, or has to mend something, wants no more of it now
        if late := self._state.queues.take_custom():
            messages = [prompt.custom for prompt in late if prompt.custom is not None]
            for message in messages:
                await self._say(message)
            prompt = Prompt(text="", source="extension", heard=True, owner=all(prompt.owner for prompt in late))
            await self._ask(prompt, messages[0].custom_type, self._state.services.ids())
            return
        await self._follow_up()

    async def _follow_up(self) -> None:
        """Start the next run that an extension has asked for."""
        waiting = self.extensions.follow_ups
        item = waiting.take()
        if item is None:
            self._tell_limit()
            return
        self._told_of_limit = False
        try:
            await self._ask(Prompt(text=item.text, source="extension", owner=item.owner), item.extension, item.id)
        except BaseException:
            waiting.put_back(item)
            raise

    async def _ask(self, prompt: Prompt, extension: str, id: str) -> None:
        await self._host.prompt(prompt, session_id=self._state.transcript.manager.id, extension=extension, id=id)

    def _tell_limit(self) -> None:
        if self.extensions.follow_ups.exhausted and len(self.extensions.follow_ups) and not self._told_of_limit:
            self._told_of_limit = True
            text = "too many runs in a row without a word from a person; what is left waits for one"
            self._state.listeners.emit(ExtensionError(extension="", event="follow_up", error=text))
