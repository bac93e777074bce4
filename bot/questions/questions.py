"""The questions of all chats."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from bot.delivery import Outbox
from bot.delivery.errands import Errands
from bot.questions import records, wording
from bot.questions.chat_questions import ChatQuestions
from bot.questions.question import Question
from features.contracts.chat import Address, OutboundMessage
from features.contracts.clock import Clock
from features.contracts.database import Database
from features.contracts.places import readdress
from features.contracts.sessions import TransactionWork

__all__ = ["Questions"]

log = logging.getLogger("pumice.questions")

_REMEMBERED = timedelta(days=7)
_MOST_LEFT_OVER = 500


class Questions:
    """Shows questions, ends them, and remembers for a week what became of each.

    ``leaving`` is set when the host ends: what is cut from then on is cut by a restart and not by anybody's will.
    """

    def __init__(self, database: Database, outbox: Outbox, *, clock: Clock, ids: Callable[[], str]) -> None:
        self.clock = clock
        self.leaving = False
        self._database = database
        self._outbox = outbox
        self._ids = ids
        self._errands = Errands(log, ids)

    def chat(self, address: Address, *, noted: Callable[[Sequence[str]], None]) -> ChatQuestions:
        """The questions of one address; ``noted`` hears of its status lines."""
        return ChatQuestions(address, self, noted=noted)

    async def recover(self) -> None:
        """End what an earlier process asked, and take away the buttons that it left."""
        before = self.clock.now() - _REMEMBERED
        forget, end = records.forget_before(before), records.end_all_open(wording.RESTARTED)
        await self._database.write(lambda t: (forget(t), end(t)))
        for record in await self._database.read(lambda t: records.left_over(t, limit=_MOST_LEFT_OVER)):
            self._errands.start(self._close(record), name=f"question {record.id}")

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        return lambda transaction: readdress(transaction, "questions", "address", old, new)

    def place_moved(self, old: Address, new: Address) -> None:
        """Nothing is kept in memory but what conversations hold."""

    async def close(self) -> None:
        await self._errands.close()

    # What the chats use

    def new(self, text: str, options: Sequence[str], *, owners_only: Sequence[str], people: frozenset[str]) -> Question:
        return Question(self._ids(), text, options, owners_only=owners_only, people=people, asked_at=self.clock.now())

    async def show(self, question: Question, address: Address) -> None:
        """Post a question; it is in the table in the same commit."""
        at = self.clock.now()
        message = OutboundMessage(text=question.text, buttons=question.buttons())
        await self._outbox.post(address, message, also=lambda delivery_id: records.opened(question.id, address, delivery_id, at))

    async def post(self, address: Address, message: OutboundMessage) -> None:
        await self._outbox.post(address, message)

    async def ended(self, question_id: str, ending: str, *, message_ids: tuple[str, ...]) -> None:
        await self._database.write(records.ended(question_id, ending, message_ids=message_ids))

    def over(self, question_id: str, ending: str | None) -> None:
        """A question that nobody waits for any more: note it and take its buttons away, without waiting.

        Args:
            ending: what became of it, unless it was answered; None when whoever asked was cut.
        """
        said = ending or (wording.RESTARTED if self.leaving else wording.OVER)
        self._errands.start(self._end(question_id, said), name=f"question {question_id}")

    async def what_became_of(self, question_id: str, address: Address) -> str:
        """The truth about a question that is not open here, for whoever presses its button."""
        record = await self._database.read(lambda t: records.find(t, question_id))
        if record is None or record.address.place != address.place:
            return wording.UNKNOWN
        return f"This is over. {record.ending or wording.OVER}"

    async def _end(self, question_id: str, ending: str) -> None:
        await self._database.write(records.ended(question_id, ending))
        record = await self._database.read(lambda t: records.find(t, question_id))
        if record is not None:  # it never got as far as the chat otherwise
            await self._close(record)

    async def _close(self, record: records.QuestionRecord) -> None:
        seen = await self._outbox.close_buttons(record.address, record.delivery_id, record.ending)
        await self._database.write(records.closed(record.id))
        if not seen:
            await self._outbox.post(record.address, OutboundMessage(text=record.ending))
