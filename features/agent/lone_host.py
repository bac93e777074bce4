"""A session that nobody but the caller of ``AgentSession`` holds."""

import asyncio
from collections.abc import Awaitable, Callable

from features.contracts.agent import Prompt
from features.contracts.errors import SessionBusyError, UserMustAct

__all__ = ["LoneHost"]

_MAX_WAITING = 32


class LoneHost:
    """Implements ``SessionHost``: prompts of extensions run one after another; there is no other session to go to.

    Args:
        run: carries a prompt out, once nothing else goes on.
    """

    def __init__(self, run: Callable[[Prompt], Awaitable[object]]) -> None:
        self._run = run
        self._waiting: list[Prompt] = []
        self._task: asyncio.Task[None] | None = None

    async def prompt(self, prompt: Prompt, *, session_id: str, extension: str, id: str) -> None:
        """
        Raises:
            SessionBusyError: 32 wait already.
        """
        if len(self._waiting) >= _MAX_WAITING:
            raise SessionBusyError(f"{_MAX_WAITING} prompts of extensions wait already")
        self._waiting.append(prompt)
        if self._task is None:
            self._task = asyncio.create_task(self._serve(), name="prompts of extensions")

    async def new_session(self, name: str) -> str:
        raise _alone()

    async def switch_session(self, session_id: str) -> None:
        raise _alone()

    async def reload(self) -> None:
        raise _alone()

    async def close(self) -> None:
        self._waiting.clear()
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _serve(self) -> None:
        try:
            while self._waiting:
                await self._run(self._waiting.pop(0))
        finally:
            self._task = None


def _alone() -> UserMustAct:
    return UserMustAct("This session stands alone; there is no chat around it in which that could be done.")
