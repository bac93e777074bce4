"""The run of a conversation: from a turn to what is delivered for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from bot.conversations.command_desk import defect_text
from bot.conversations.elapsed import with_elapsed
from bot.conversations.presenter import SUMMING_UP, NoView, Presenter, tool_line
from bot.conversations.services import ConversationServices
from bot.conversations.turn import Turn
from bot.delivery.errands import FULL_DISK_DELAY_S, Errands
from bot.delivery.inbox import UnfinishedTurn
from bot.delivery.outbox import CutRun
from bot.delivery.run_books import RunBooks, RunStart
from bot.delivery.wording import STOPPED
from bot.questions import Asker, ChatQuestions
from bot.settings import ChatSettings
from features.agent import AgentSession
from features.contracts.agent import RunFailure, RunOutcome
from features.contracts.chat import Address, OutboundMessage
from features.contracts.errors import OperatorMustAct, PumiceError
from features.contracts.events import AgentEnd, CompactionEnd, CompactionStart, SessionEvent, ToolExecutionEnd, ToolExecutionStart
from features.contracts.jobs import RunEnd
from features.contracts.messages import AssistantMessage, Usage, message_text
from features.contracts.sessions import MessageEntry

__all__ = ["Runs"]

log = logging.getLogger("pumice.conversations")

_ENDS: Mapping[str, RunEnd] = {"success": "done", "error": "failed", "aborted": "stopped"}


class Runs:
    """At most one run at a time; what it owes is delivered before the next begins.

    Args:
        ended: called when a run is over, whatever came of it.
    """

    def __init__(
        self,
        address: Address,
        services: ConversationServices,
        errands: Errands,
        questions: ChatQuestions,
        *,
        ended: Callable[[AgentSession], None],
    ) -> None:
        self.books = RunBooks(
            address,
            services.outbox,
            ids=services.ids,
            usage=lambda message: services.spent(address.place, self._zone, message),
            more_to_come=self._more_to_come,
        )
        self.tools: dict[str, tuple[str, float]] = {}
        self.turn: Turn | None = None
        self._address = address
        self._services = services
        self._errands = errands
        self._questions = questions
        self._ended = ended
        self._zone = "UTC"
        self._session: AgentSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._presenter: Presenter | None = None
        self._halting = False

    @property
    def active(self) -> bool:
        return self._task is not None

    def start(self, session: AgentSession, turn: Turn, settings: ChatSettings) -> None:
        """Begin a run with a turn; no run may be active."""
        asker = Asker(people=turn.people, attended=turn.attended)
        self.turn = turn
        if turn.apart and turn.empty:
            start = RunStart(reply_to=turn.reply_to, answers=turn.ids)
            self._launch(session, settings, start, asker, turn.ids, lambda: session.resume(turn.ids, owner=turn.owner))
            return
        prompt, run = turn.prompt(), turn.run
        start = RunStart(
            reply_to=turn.reply_to, scheduled=turn.ids if run is not None else (), heading=run.heading if run is not None else ""
        )  # fmt: skip
        self._launch(session, settings, start, asker, turn.ids, lambda: session.prompt(prompt))

    def resume(self, session: AgentSession, unfinished: UnfinishedTurn, cut: CutRun, settings: ChatSettings) -> None:
        """Go on with what an earlier process left unfinished; no run may be active."""
        start = RunStart(
            reply_to=unfinished.reply_to,
            run_id=self._services.ids(),
            answers=unfinished.message_ids,
            draft=cut.draft,
            uncertain=cut.uncertain,
            replaces=cut.run_ids,
        )
        asker = Asker(people=unfinished.people, attended=unfinished.attended)
        self._launch(session, settings, start, asker, unfinished.message_ids, lambda: _go_on(session, unfinished))

    def again(self, session: AgentSession, asked: tuple[str, ...], settings: ChatSettings, asker: Asker, *, owner: bool) -> None:
        """Begin a run that answers what stands at the end of the branch; no run may be active.

        Args:
            asked: the messages that the answer answers, which are none that it takes in.
        """
        self._launch(session, settings, RunStart(answers=asked), asker, asked, lambda: session.resume(owner=owner))

    async def halt(self) -> None:
        """Stop the run; returns when what it owes is in the outbox, or when it is parked."""
        task = self._task
        if task is None:
            return
        self._halting = True
        if self._session is not None:
            await self._session.abort()
        await asyncio.wait([task])

    async def settled(self) -> None:
        """Wait until the run that is going on, if any, has ended by itself."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def on_event(self, event: SessionEvent) -> None:
        match event:
            case ToolExecutionStart():
                self.tools[event.tool_call_id] = (tool_line(event), self._services.clock.monotonic())
            case CompactionStart():
                self.tools[SUMMING_UP] = (SUMMING_UP, self._services.clock.monotonic())
            case CompactionEnd():
                self.tools.pop(SUMMING_UP, None)
            case ToolExecutionEnd():
                self.tools.pop(event.tool_call_id, None)
            case AgentEnd():
                self.tools.clear()
            case _:
                pass
        if self._presenter is not None:
            self._presenter.on_event(event)

    def note(self, lines: Sequence[str]) -> None:
        """Show lines beside what the run is doing."""
        if self._presenter is not None:
            self._presenter.note(lines)

    def running_tools(self) -> tuple[str, ...]:
        """What runs, and for how long."""
        now = self._services.clock.monotonic()
        return tuple(with_elapsed(line, now - began) for line, began in self.tools.values())

    def _more_to_come(self) -> bool:
        return self._session is not None and bool(self._session.queued)

    def _launch(
        self,
        session: AgentSession,
        settings: ChatSettings,
        start: RunStart,
        asker: Asker,
        asked: tuple[str, ...],
        ask: Callable[[], Coroutine[Any, Any, RunOutcome | None]],
    ) -> None:
        assert self._task is None
        self._halting = False
        self._session = session
        self._zone = settings.time_zone
        self.books.session_id = session.id
        self.books.begin(start)
        self._task = self._errands.start(self._carry(session, settings, start, asker, asked, ask), name=f"run {self._address}")

    async def _carry(
        self,
        session: AgentSession,
        settings: ChatSettings,
        start: RunStart,
        asker: Asker,
        asked: tuple[str, ...],
        ask: Callable[[], Coroutine[Any, Any, RunOutcome | None]],
    ) -> None:
        presenter = self._presenter = self._present(settings, start)
        presenter.note(self._questions.notes)
        try:
            try:
                with self._questions.during_run(asker):
                    outcome = None if self._halting else await ask()
            finally:  # what is owed goes out after the last that the view sends
                self.books.draft_left(await presenter.close())
            if outcome is None:
                outcome = _branch_end(session, stopped=self._halting)
            await self._until_stored(lambda: self.books.settle(outcome, asked=asked))
            self._tell_end(outcome)
        except PumiceError as error:
            text = str(error)
            await self._until_stored(lambda: self.books.fail(text, answers=asked))
            self._services.ended(self.books.message_ids, "failed", text)
        except Exception:
            error_id = self._services.ids()
            log.exception("run broke", extra={"facts": {"chat": str(self._address), "error_id": error_id}})
            await self._until_stored(lambda: self.books.fail(defect_text(error_id), answers=asked))
            self._services.ended(self.books.message_ids, "failed", f"error {error_id}")
        finally:
            self._presenter = None
            self._task = None
            self.turn = None
            self._ended(session)

    def _tell_end(self, outcome: RunOutcome) -> None:
        """Say how the run ended to whoever keeps books of scheduled ones; a run that is parked has not."""
        if self.books.parked and outcome.outcome == "aborted":
            return
        end: RunEnd = "silent" if self.books.silent else _ENDS[outcome.outcome]
        self._services.ended(self.books.message_ids, end, outcome.failure.message if outcome.failure else "")

    async def _until_stored(self, owe: Callable[[], Awaitable[None]]) -> None:
        """A full disk must not swallow an answer; it waits until there is room."""
        while True:
            try:
                return await owe()
            except OperatorMustAct as error:
                log.error("an answer could not be stored", extra={"facts": {"chat": str(self._address), "error": str(error)}})
                await self._services.clock.sleep(FULL_DISK_DELAY_S)

    def _present(self, settings: ChatSettings, start: RunStart) -> Presenter:
        channel = self._services.channels[self._address.channel]
        unseen = bool(start.scheduled)
        view = NoView() if unseen else channel.live(self._address, reply_to=start.reply_to, opened=self.books.draft_shown)
        return Presenter(
            view,
            clock=self._services.clock,
            stream=settings.stream and not unseen,
            verbose="off" if unseen else settings.verbose,
            may_show=self.books.intend_draft,
            spawn=lambda work: self._errands.start(work, name=f"presenter {self._address}"),
            tell=self._tell,
        )

    async def _tell(self, text: str) -> None:
        await self._services.outbox.post(self._address, OutboundMessage(text=text))


async def _go_on(session: AgentSession, unfinished: UnfinishedTurn) -> RunOutcome | None:
    """Resume; a run that was parked ends in an answer cut off by the host, from before which it goes on."""
    last = _last_message(session)
    if last is not None and isinstance(last.message, AssistantMessage) and last.message.stop_reason == "aborted":
        await session.manager.branch_to(last.parent_id)
    return await session.resume(unfinished.message_ids, owner=unfinished.owner)


def _last_message(session: AgentSession) -> MessageEntry | None:
    return next((entry for entry in reversed(session.manager.branch()) if isinstance(entry, MessageEntry)), None)


def _branch_end(session: AgentSession, *, stopped: bool) -> RunOutcome:
    """What is owed for messages whose run ended before it could be delivered."""
    last = _last_message(session)
    answer = last.message if last is not None and isinstance(last.message, AssistantMessage) else None
    text = message_text(answer) if answer is not None and not stopped else ""
    failed = answer is not None and answer.stop_reason == "error" and not stopped
    return RunOutcome(
        run_id="",
        outcome="aborted" if stopped else "error" if failed else "success",
        text=STOPPED if stopped else text,
        source_ids=(),
        usage=Usage(),
        failure=RunFailure(kind="unknown", message=answer.error_message or "") if failed and answer is not None else None,
    )
