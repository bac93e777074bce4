"""The books of a run: which messages it took in, and what it owes for them."""

import logging
from collections.abc import Callable

import msgspec

from bot.delivery.delivery import DRAFT_INTENDED, Delivery, Outcome, intend_draft
from bot.delivery.inbox import answered, consumed
from bot.delivery.outbox import Outbox
from bot.delivery.wording import SILENT, closing_text, failure_text
from features.contracts.agent import RunOutcome
from features.contracts.chat import Address, OutboundMessage
from features.contracts.database import Transaction
from features.contracts.messages import AssistantMessage, CustomMessage, ToolCall, message_text
from features.contracts.sessions import MessageEntry, SessionEntry, TransactionWork

__all__ = ["RunBooks", "RunStart"]

log = logging.getLogger("pumice.run_books")


class RunStart(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before a run begins.

    ``answers`` are messages that an earlier, cut run took in already; ``draft`` is what that run left on show, and ``uncertain`` says that
    it may have left something whose id nobody knows; ``replaces`` are the rows that say so. ``run_id`` stands for a resumed run until its
    first entry tells its own; never the cut run's, which may have an answer of its own under it. ``scheduled`` are the messages that no
    person sent, whose answer may be silence; ``heading`` stands before what is said.
    """

    reply_to: str | None = None
    run_id: str | None = None
    answers: tuple[str, ...] = ()
    draft: str | None = None
    uncertain: bool = False
    replaces: tuple[str, ...] = ()
    scheduled: tuple[str, ...] = ()
    heading: str = ""


class RunBooks:
    """Implements ``EntryJournal`` for the session of one conversation; one run at a time.

    - A prompt's messages are marked as consumed in the commit that stores the prompt.
    - An answer is in the outbox, and what it answers is marked, in the commit that stores the answer. Until the run has ended the row is
      held; ``settle`` lets it go, rewritten only if more has been said since.
    - A run that is ``parked`` leaves its messages unanswered, so that the next start takes it up again.

    Args:
        usage: SQL that enters what a model call has cost.
        more_to_come: whether the session has messages that the run will still take in.
    """

    def __init__(
        self,
        address: Address,
        outbox: Outbox,
        *,
        ids: Callable[[], str],
        usage: Callable[[AssistantMessage], TransactionWork],
        more_to_come: Callable[[], bool],
    ) -> None:
        self.address = address
        self.session_id = ""
        self.parked = False
        self._outbox = outbox
        self._ids = ids
        self._usage = usage
        self._more_to_come = more_to_come
        self.begin(RunStart())

    def begin(self, start: RunStart) -> None:
        """Open the books of the next run."""
        self._start = start
        self._run_id = start.run_id
        self._texts: list[str] = []
        self._answers = list(start.answers)
        self._draft = start.draft
        self._draft_noted_under = start.run_id
        self._delivery: Delivery | None = None
        self._written: tuple[str, tuple[str, ...], Outcome] | None = None
        self._silent = False

    @property
    def silent(self) -> bool:
        """Whether the run ended with nothing to deliver."""
        return self._silent

    @property
    def run_id(self) -> str | None:
        return self._run_id

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The messages that the run has taken in so far."""
        return tuple(self._answers)

    def __call__(self, run_id: str, entry: SessionEntry, source_ids: tuple[str, ...]) -> TransactionWork | None:
        if run_id:  # an extension may put a message between two runs
            self._run_id = run_id
        if not isinstance(entry, MessageEntry):
            return None
        if isinstance(entry.message, AssistantMessage):
            return self._assistant(entry.message)
        if isinstance(entry.message, CustomMessage):
            shown = message_text(entry.message).strip() if entry.message.display else ""
            return self._outbox.put_beside(self.address, OutboundMessage(text=shown)) if shown else None
        if not source_ids:
            return None
        self._answers += source_ids
        return _joined(consumed(source_ids, run_id=run_id, session_id=self.session_id, entry_id=entry.id), self._reopened())

    def _assistant(self, message: AssistantMessage) -> TransactionWork:
        spent = self._usage(message)
        if any(isinstance(block, ToolCall) for block in message.content):
            return spent
        if message.stop_reason in ("stop", "length"):
            if text := message_text(message).strip():
                self._texts.append(text)
            if not text:  # the agent may ask once more for a word; what it says in the end is settled then
                return spent
            self._silent = self._is_silent()
            if self._silent:
                return _joined(spent, self._answered())
            return _joined(spent, self._row(self._said(), "success", final=not self._more_to_come()))
        if message.stop_reason == "aborted" and not self.parked:
            said = [*self._texts, message_text(message).strip()]
            return _joined(spent, self._row("\n\n".join(text for text in said if text), "aborted", final=True))
        return spent

    def _said(self) -> str:
        return "\n\n".join(text for text in self._texts if not (self._start.scheduled and text == SILENT))

    def _is_silent(self) -> bool:
        """Nothing was said but that there is nothing to say, and no person waits for a word."""
        return bool(self._texts) and not self._said() and set(self._answers) <= set(self._start.scheduled)

    def _answered(self) -> TransactionWork:
        answers = tuple(self._answers)
        return lambda transaction: answered(answers, transaction)

    def _reopened(self) -> TransactionWork | None:
        """The run goes on although it seemed to end: its row is not to be sent yet."""
        if self._delivery is None or self._written is None or self._delivery.state == "held":
            return None
        return self._outbox.put(self._delivery, final=False)

    def _row(self, said: str, outcome: Outcome, *, final: bool, failure: str = "") -> TransactionWork:
        assert self._run_id is not None
        text = self._closing(said, outcome, failure)
        answers = tuple(self._answers)
        message = OutboundMessage(
            text=text, reply_to=self._start.reply_to, possible_duplicate=self._start.uncertain and self._draft is None
        )
        if self._delivery is None:
            self._delivery = self._outbox.run_delivery(self.address, message, run_id=self._run_id, answers=answers)
        self._delivery.message = message
        self._delivery.answers = answers
        self._delivery.outcome = outcome
        self._delivery.draft = self._draft
        self._written = (text, answers, outcome)
        replaces = (*self._start.replaces, self._draft_noted_under) if self._draft_noted_under is not None else self._start.replaces
        return self._outbox.put(self._delivery, final=final, replaces=replaces)

    # The draft

    async def intend_draft(self) -> bool:
        """Note that a draft is about to be shown; returns when that is on the disk.

        Returns:
            False if none may be shown: the cut run left one, which the answer replaces, or may have left one, which the answer mentions.
        """
        if self._run_id is None or self._start.draft is not None or self._start.uncertain:
            return False
        if self._draft is not None:
            return True
        self._draft = DRAFT_INTENDED
        self._draft_noted_under = self._run_id
        stub = self._outbox.run_delivery(self.address, OutboundMessage(), run_id=self._run_id, answers=())
        await self._outbox.write(intend_draft(stub))
        return True

    def draft_shown(self, ref: str) -> None:
        """Keep the id of the draft, without waiting."""
        self._draft = ref
        if self._draft_noted_under is not None:
            self._outbox.note_draft(self._draft_noted_under, ref)

    def draft_left(self, ref: str | None) -> None:
        """The live view has ended; ``ref`` is what it left on show. Without a view of its own a run keeps what an earlier one left."""
        if ref is not None or self._draft == DRAFT_INTENDED:
            self._draft = ref

    # The end

    async def settle(self, outcome: RunOutcome, *, asked: tuple[str, ...] = ()) -> None:
        """Deliver what the run owes. A failure is logged in full under the id that the person reads.

        Args:
            asked: the messages it was started for, which are answered by this even if they could not be taken in.
        """
        if self.parked and outcome.outcome == "aborted":
            return
        self._add_answers(asked)
        failure = ""
        if outcome.outcome == "error":
            error_id = self._ids()
            facts = {
                "chat": str(self.address),
                "error_id": error_id,
                "kind": outcome.failure.kind if outcome.failure else "unknown",
                "error": outcome.failure.message if outcome.failure else "",
            }
            level = logging.INFO if facts["kind"] == "budget" else logging.ERROR
            log.log(level, "run failed", extra={"facts": facts})
            failure = failure_text(outcome.failure, error_id)
        self._silent = outcome.outcome == "success" and self._is_silent()
        if self._silent:
            await self._outbox.write(self._answered())
            return
        said = self._said() if self._start.scheduled and outcome.outcome == "success" else outcome.text
        await self._close(said, outcome.outcome, failure)

    async def fail(self, text: str, *, answers: tuple[str, ...] = ()) -> None:
        """Deliver an end that the agent did not give: a defect, or a session that cannot be had.

        Args:
            answers: messages that are answered by this although no run took them in.
        """
        self._add_answers(answers)
        if self._run_id is None:
            message = OutboundMessage(text=text, reply_to=self._start.reply_to)
            await self._outbox.post(self.address, message, answers=self.message_ids)
        else:
            await self._close("\n\n".join(self._texts), "error", text)

    def _add_answers(self, message_ids: tuple[str, ...]) -> None:
        self._answers += [message_id for message_id in message_ids if message_id not in self._answers]

    def _closing(self, said: str, outcome: Outcome, failure: str) -> str:
        text = closing_text(said, outcome=outcome, failure=failure)
        return f"{self._start.heading}\n\n{text}" if self._start.heading else text

    async def _close(self, said: str, outcome: Outcome, failure: str) -> None:
        text = self._closing(said, outcome, failure)
        if self._run_id is None:
            await self._outbox.post(self.address, OutboundMessage(text=text, reply_to=self._start.reply_to), answers=self.message_ids)
            return
        delivery = self._delivery
        if delivery is None or self._written != (text, self.message_ids, outcome) or delivery.state == "held":
            await self._outbox.write(self._row(said, outcome, final=True, failure=failure))
            delivery = self._delivery
        assert delivery is not None
        delivery.draft = self._draft or None
        self._delivery = None
        await self._outbox.release(delivery)


def _joined(*works: TransactionWork | None) -> TransactionWork:
    parts = [work for work in works if work is not None]

    def work(transaction: Transaction) -> None:
        for part in parts:
            part(transaction)

    return work
