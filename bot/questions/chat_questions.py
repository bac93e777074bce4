"""The questions of one chat."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

import msgspec

from bot.chat_commands.markdown import one_line
from bot.delivery.inbox import StoredMessage
from bot.questions import wording
from bot.questions.question import MOST_BUTTONS, NO, YES, Question
from features.contracts.chat import Address, OutboundMessage, Person
from features.contracts.errors import UserMustAct

if TYPE_CHECKING:
    from bot.questions.questions import Questions

__all__ = ["Asker", "ChatQuestions"]

_MOST_OPEN = 8
_LONGEST_WAIT_S = 24 * 3600.0
_MOST_NOTES = 8
_LONGEST_NOTE = 80
_LONGEST_NOTICE = 4000
_MARKS = {"info": "", "warning": "⚠️ ", "error": "✗ "}
_WAITING = "waits for an answer"


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """On whose behalf something is done. ``attended`` is False where nobody looks: a single question on a command line, a job."""

    people: frozenset[str]
    attended: bool = True


_NOBODY = Asker(people=frozenset())
_commanding: ContextVar[Asker | None] = ContextVar("commanding", default=None)


class ChatQuestions:
    """Implements ``UserInterface`` for one address. At most 8 questions are open at a time; one more gets the safe answer.

    Within ``during_run`` the people behind a run are asked, within ``on_behalf_of`` whoever gave a command; an owner at any other time.

    Args:
        noted: called with the status lines when they change.
    """

    def __init__(self, address: Address, questions: "Questions", *, noted: Callable[[Sequence[str]], None]) -> None:
        self._asker: Asker | None = None
        self._address = address
        self._questions = questions
        self._noted = noted
        self._notes: dict[str, str] = {}
        self._open: dict[str, Question] = {}

    # UserInterface

    @property
    def interactive(self) -> bool:
        return self.asker_now.attended

    async def confirm(self, title: str, message: str = "", *, timeout_s: float | None = None) -> bool:
        return await self._ask(wording.question_text(title, message, (YES, NO), numbered=False), (YES, NO), timeout_s=timeout_s) == YES

    async def select(
        self, title: str, options: Sequence[str], *, timeout_s: float | None = None, owners_only: Sequence[str] = ()
    ) -> str | None:
        if not options:
            return None
        text = wording.question_text(title, "", options, numbered=len(options) > MOST_BUTTONS)
        return await self._ask(text, options, timeout_s=timeout_s, owners_only=owners_only)

    async def input(self, title: str, placeholder: str = "", *, timeout_s: float | None = None) -> str | None:
        text = wording.question_text(title, "", (), numbered=False, placeholder=placeholder)
        return await self._ask(text, (), timeout_s=timeout_s)

    def status(self, key: str, text: str | None) -> None:
        if text is None:
            self._notes.pop(key, None)
        elif key in self._notes or len(self._notes) < _MOST_NOTES:
            self._notes[key] = one_line(text, limit=_LONGEST_NOTE)
        self._noted(self.notes)

    async def notify(self, message: str, kind: Literal["info", "warning", "error"] = "info") -> None:
        await self._questions.post(self._address, OutboundMessage(text=_MARKS[kind] + message[:_LONGEST_NOTICE]))

    # Answers

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._notes.values(), *([_WAITING] if self._open else []))

    @property
    def idle(self) -> bool:
        return not self._open

    def open_texts(self) -> list[str]:
        """What is being asked and not answered yet."""
        return [f"A question to the person is open: {question.text}" for question in self._open.values()]

    @contextmanager
    def during_run(self, asker: Asker) -> Iterator[None]:
        """One at a time. What started the run, a command perhaps, has no say in it."""
        token, self._asker = _commanding.set(None), asker
        try:
            yield
        finally:
            self._asker = None
            _commanding.reset(token)

    @contextmanager
    def on_behalf_of(self, asker: Asker) -> Iterator[None]:
        token = _commanding.set(asker)
        try:
            yield
        finally:
            _commanding.reset(token)

    async def press(self, question_id: str, number: str, person: Person, *, owner: bool, group: bool) -> None:
        """Take the answer that a button stands for.

        Raises:
            UserMustAct: it is not for this person, or it is too late; the text says what became of the question.
        """
        question = self._open.get(question_id)
        if question is not None and question.taken:
            async with question.taking:  # the answer before is being written down
                question = None
        if question is None:
            raise UserMustAct(await self._questions.what_became_of(question_id, self._address))
        if not question.may_answer(person.id, owner=owner):
            if person.id in question.refused:
                return  # told once; a chat is not filled by somebody's finger
            question.refused.add(person.id)
            raise UserMustAct(wording.NOT_YOURS)
        answer = question.chosen(number)
        if answer is None:
            raise UserMustAct(wording.NO_SUCH_CHOICE)
        await self._take(question, answer, person, owner=owner, group=group)

    def understands(self, stored: StoredMessage) -> bool:
        """Whether a plain message answers a question of this chat, and ``typed`` is to be told of it."""
        return bool(self._meant(stored))

    async def typed(self, stored: StoredMessage) -> None:
        """Take a message that ``understands`` said yes to.

        Raises:
            UserMustAct: it could mean more than one question, or is not for this person to say.
        """
        meant = self._meant(stored)
        if len(meant) != 1:
            raise UserMustAct(wording.SEVERAL if meant else wording.OVER)
        question, message = meant[0], stored.message
        answer = question.understood(message.text)
        assert answer is not None
        await self._take(question, answer, message.sender, owner=stored.owner, group=message.group, message_ids=(stored.id,))

    def _meant(self, stored: StoredMessage) -> list[Question]:
        message = stored.message
        if message.kind != "message" or message.attachments or not self._open:
            return []
        return [
            question
            for question in self._open.values()
            if not question.taken
            and not question.came_before(message.sent_at)
            and question.may_answer(message.sender.id, owner=stored.owner)
            and question.understood(message.text) is not None
        ]

    async def _take(
        self, question: Question, answer: str, person: Person, *, owner: bool, group: bool, message_ids: tuple[str, ...] = ()
    ) -> None:
        """On the disk first: what was answered must be known after a crash, and only the first answer counts."""
        if not question.may_take(answer, owner=owner):
            raise UserMustAct(wording.OWNERS_ALONE)
        async with question.taking:
            ending = wording.ended_by(person.name, answer, group=group, choice=bool(question.options))
            await self._questions.ended(question.id, ending, message_ids=message_ids)
            if not question.answer.done():
                question.answer.set_result(answer)

    # Asking

    @property
    def asker_now(self) -> Asker:
        """On whose behalf something is done at this moment."""
        return _commanding.get() or self._asker or _NOBODY

    async def _ask(self, text: str, options: Sequence[str], *, timeout_s: float | None, owners_only: Sequence[str] = ()) -> str | None:
        if not self.interactive or len(self._open) >= _MOST_OPEN:
            return None
        question = self._questions.new(text, options, owners_only=owners_only, people=self.asker_now.people)
        self._open[question.id] = question
        ending: str | None = None
        try:
            self._noted(self.notes)
            await self._questions.show(question, self._address)
            limit = min(_LONGEST_WAIT_S if timeout_s is None else timeout_s, _LONGEST_WAIT_S)
            if not await self._answered(question, limit):
                ending = wording.nobody_answered(limit, choice=bool(options))
                return None
            return question.answer.result()
        finally:
            del self._open[question.id]
            self._noted(self.notes)
            self._questions.over(question.id, ending)

    async def _answered(self, question: Question, seconds: float) -> bool:
        timer = asyncio.ensure_future(self._questions.clock.sleep(seconds))
        try:
            await asyncio.wait((question.answer, timer), return_when=asyncio.FIRST_COMPLETED)
            async with question.taking:  # what came in time may be on its way to the disk
                pass
        finally:
            timer.cancel()
        return question.answer.done()
