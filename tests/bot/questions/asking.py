"""A run whose tool asks the person."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.testing import LoopbackChat, Shown
from features.agent.testing import ScriptedProvider, answers, call
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.contracts.ui import UserInterface
from tests.bot.conversations.rig import Rig, eventually, opened

__all__ = ["Asking", "asking"]

Question = Callable[[UserInterface], Awaitable[object]]


class Asking:
    """``got`` is what each question came to, in order of their ends."""

    def __init__(self, rig: Rig, questions: list[Question], *, group: bool) -> None:
        self.rig = rig
        self.chat: LoopbackChat = rig.chat("5" if group else "1", group=group)
        self.got: list[object] = []
        self._questions = questions
        rig.tool._run = self._ask

    @property
    def ui(self) -> UserInterface:
        return self.rig.conversation(self.chat.address.chat)._questions

    async def asked(self, text: str = "") -> Shown:
        """The question in the chat, and its buttons where it has some."""
        await self.chat.until(lambda: any(text in shown.text and shown.final for shown in self.chat.shown))
        return next(shown for shown in self.chat.shown if text in shown.text and shown.final)

    async def over(self, count: int = 1) -> list[object]:
        await eventually(lambda: len(self.got) >= count)
        return self.got

    async def stored(self) -> None:
        """Wait until a question is on the disk and its time runs."""
        async with asyncio.timeout(20):
            while not await self.rig.rows("SELECT 1 FROM questions"):  # noqa: ASYNC110 - the database tells nobody
                await asyncio.sleep(0.001)
        await eventually(lambda: self.rig.clock.sleepers > 0)

    async def _ask(self, call: ToolInvocation) -> ToolResult:
        answer = await self._questions[int(call.arguments.get("text") or 0)](self.ui)
        self.got.append(answer)
        return text_result(repr(answer))


@asynccontextmanager
async def asking(folder: Path, *questions: Question, group: bool = False, **settings: Any) -> AsyncIterator[Asking]:
    """One call per question, all at the same time, then an answer."""
    calls = [call(f"c{number}", "work", text=str(number)) for number in range(len(questions))]
    async with opened(folder, ScriptedProvider(answers(*calls), answers("well then")), **settings) as rig:
        yield Asking(rig, list(questions), group=group)
