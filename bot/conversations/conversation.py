"""One address: what people say there, in order, and the session that answers."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Literal

from bot.conversations.command_desk import CommandDesk, defect_text
from bot.conversations.extension_desk import ExtensionDesk
from bot.conversations.gathering import Gathering
from bot.conversations.pending import Pending
from bot.conversations.preparation import Preparation
from bot.conversations.runs import Runs
from bot.conversations.services import ConversationServices
from bot.conversations.session_moves import SessionMoves
from bot.conversations.session_seat import SessionSeat
from bot.conversations.skill_desk import SkillDesk
from bot.conversations.standing import ConversationStatus, StopReport
from bot.conversations.summing_up import SummingUp
from bot.conversations.turn import Turn
from bot.conversations.turn_desk import TurnDesk
from bot.conversations.voice import Voice
from bot.conversations.waiting_line import WaitingLine
from bot.delivery.delivery import Delivery
from bot.delivery.errands import FULL_DISK_DELAY_S, Errands
from bot.delivery.inbox import StoredMessage, UnfinishedTurn
from bot.delivery.outbox import CutRun
from bot.extension_texts import extension_news
from bot.settings import ChatSettings
from features.agent import AgentSession
from features.contracts.chat import Address, Button, ChatCommand, OutboundFile, Person
from features.contracts.errors import OperatorMustAct, PumiceError, UserMustAct
from features.contracts.events import MessageEnd, SessionEvent
from features.contracts.jobs import JobOrigin
from features.contracts.messages import CustomMessage
from features.contracts.models import Model, ThinkingLevel
from features.extensions import LoadedExtension

__all__ = ["Conversation"]

log = logging.getLogger("pumice.conversations")


class Conversation:
    """The actor of one address. It lives while there is something to do; a defect ends the turn it happened in and nothing else.

    Args:
        backlog: messages wait in the inbox from before.
        recovered_through: the position of the newest message that an earlier process accepted.
    """

    def __init__(self, address: Address, services: ConversationServices, *, backlog: bool = False, recovered_through: int = 0) -> None:
        self.address = address
        self.place = address.place
        self.last_used = services.clock.monotonic()
        self._services = services
        self._errands = Errands(log, services.ids)
        self._voice = Voice(address, services.outbox)
        self._questions = services.questions.chat(address, noted=lambda lines: self._runs.note(lines))
        self._extensions = ExtensionDesk(address, services, self._voice, self, lambda: self._seat.current)
        self._commands = CommandDesk(
            services,
            self._voice,
            self._questions,
            lambda who, owner, group: services.context(self, who, owner, group),
            further=self._extensions.parse,
            recovered_through=recovered_through,
        )
        self._skills = SkillDesk(address.place, services.skills, self._voice)
        self._line = WaitingLine(address, services.inbox, backlog=backlog)
        self._gathering = Gathering(self._line, services.clock)
        self._pending = Pending(address, services.inbox)
        self._runs: Runs = Runs(address, services, self._errands, self._questions, ended=self._run_ended)
        self._summing_up = SummingUp(address, services, self._tell)
        self._seat: SessionSeat = SessionSeat(
            address,
            services.opener,
            self._runs.books,
            self._questions,
            self._extensions,
            opened=self._opened,
            heard=self._heard,
        )
        self._preparation = Preparation(address, services, self._seat, self._pending, self._answer)
        self._turns = TurnDesk(
            address, services, self._voice, commands=self._commands, skills=self._skills, extensions=self._extensions,
            pending=self._pending, preparation=self._preparation, seat=self._seat, runs=self._runs, leaving=lambda: self._leaving,
        )  # fmt: skip
        self.moves: SessionMoves = SessionMoves(address, services, self._seat, self._runs, halt=self._halt, again=self._answer_again)
        self._unfinished: deque[tuple[UnfinishedTurn, CutRun]] = deque()
        self._actor: asyncio.Task[None] | None = None
        self._leaving = False
        self._group = False

    # What arrives

    def receive(self, stored: StoredMessage) -> None:
        """Take a message that is on the disk. Control commands and answers act at once; everything else waits for its turn."""
        self._group = stored.message.group
        self.last_used = self._services.clock.monotonic()
        if self._commands.is_control(stored):
            self._errands.start(self._act_at_once(stored), name=f"command {self.address}")
        elif self._questions.understands(stored) and self._commands.is_plain(stored):
            self._errands.start(self._take_answer(stored), name=f"answer {self.address}")
        else:
            self._put(stored)

    def _put(self, stored: StoredMessage) -> None:
        self._line.put(stored)
        self._wake()

    def take_up(self, unfinished: UnfinishedTurn | None = None, cut: CutRun | None = None) -> None:
        """Go on where an earlier process ended."""
        if unfinished is not None:
            self._unfinished.append((unfinished, cut or CutRun()))
        self._wake()

    def delivery_refused(self, delivery: Delivery, reason: str) -> None:
        """A platform will never take what was posted here: the model hears of it, and the person where anything can still be said."""
        names = ", ".join(file.name for file in delivery.message.files)
        self._pending.remark(f"(What was sent here could not be delivered{f' ({names})' if names else ''}: {reason})")
        if names:
            self._errands.start(self.say(f"I could not send {names}: {reason}"), name=f"refusal {self.address}")

    @property
    def running(self) -> bool:
        return self._runs.active

    @property
    def origin(self) -> JobOrigin:
        """Who is behind what is said here at the moment, as a job that it makes remembers it."""
        turn = self._runs.turn
        if turn is None:
            return JobOrigin()
        if (run := turn.run) is not None:
            return JobOrigin(by=run.by, owner=run.owner, group=run.group, depth=run.depth + 1)
        return JobOrigin(by=turn.first.sender.id, owner=turn.owner, group=turn.first.group)

    @property
    def idle(self) -> bool:
        """Nothing goes on and nothing is kept that is not on the disk."""
        compacting = self._seat.current is not None and self._seat.current.compacting
        return (
            self._actor is None
            and not self._runs.active
            and not compacting
            and not len(self._errands)
            and not self._pending.has_notes
            and self._questions.idle
        )

    async def _act_at_once(self, stored: StoredMessage) -> None:
        await self._commands.act_at_once(stored)
        if self._commands.has_skipped:
            self._wake()

    async def _take_answer(self, stored: StoredMessage) -> None:
        try:
            await self._questions.typed(stored)
        except UserMustAct as refusal:
            only_for = stored.message.sender.id if stored.message.group else None
            await self._voice.say(str(refusal), answers=(stored.id,), only_for=only_for)

    # The actor

    def _wake(self) -> None:
        self._line.changed.set()
        if self._actor is None and not self._leaving:
            self._actor = self._errands.start(self._serve(), name=f"conversation {self.address}")

    async def _serve(self) -> None:
        try:
            while not self._leaving:
                self._line.changed.clear()
                try:
                    if await self._step():
                        continue
                except OperatorMustAct as error:
                    log.error("a conversation waits for its host", extra={"facts": {"chat": str(self.address), "error": str(error)}})
                    await self._services.clock.sleep(FULL_DISK_DELAY_S)
                    continue
                if not self._runs.active and not self._pending.held and self._line.empty:
                    return
                await self._line.changed.wait()
        finally:
            self._actor = None

    async def _step(self) -> bool:
        """Deal with the next thing; False where there is none to deal with now."""
        if self._unfinished and not self._runs.active:
            await self._turns.resume(*self._unfinished[0])
            self._unfinished.popleft()
            return True
        turn: Turn | None = None
        if not self._runs.active and self._pending.held:
            turn = self._pending.next(all_at_once=(await self.settings()).busy == "collect")
        if turn is None and self._pending.has_room:
            turn = await self._gathering.next()
        if turn is not None:
            await self._guarded(turn)
            return True
        if self._commands.has_skipped:
            await self._commands.say_what_was_skipped()
            return True
        return False

    async def _guarded(self, turn: Turn) -> None:
        """Deal with a turn, which is held again while the host cannot write."""
        try:
            problem = await self._problem_with(turn)
            if problem is not None:
                await self.say(problem, answers=turn.ids)
                self._services.ended(turn.ids, "failed", problem)
        except OperatorMustAct:  # also of what is said about a problem: a turn that nobody was told of is not over
            self._pending.held.appendleft(turn)
            raise

    async def _problem_with(self, turn: Turn) -> str | None:
        """Deal with a turn; what the person is to be told if that failed. The one place where a defect of a turn is caught."""
        try:
            await self._turns.take(turn)
        except OperatorMustAct:
            raise
        except PumiceError as error:
            return str(error)
        except Exception:
            error_id = self._services.ids()
            log.exception("turn failed", extra={"facts": {"chat": str(self.address), "error_id": error_id}})
            return defect_text(error_id)
        return None

    def _run_ended(self, session: AgentSession) -> None:
        self.last_used = self._services.clock.monotonic()
        self._pending.take_back(session.take_queued())
        if not self._leaving:
            self._errands.start(self._skills.ask(group=self._group), name=f"skills {self.address}")
        self._wake()

    def _opened(self, session: AgentSession, news: Sequence[LoadedExtension]) -> None:
        self._services.learn(self._seat.shared_commands)
        for notice in session.notices:
            self._tell(notice)
        if news:
            text, buttons = extension_news(news)
            self._errands.start(self._voice.aside(text, buttons=buttons), name=f"extensions {self.address}")

    def _tell(self, text: str) -> None:
        self._errands.start(self._voice.aside(text), name=f"notice {self.address}")

    def _heard(self, event: SessionEvent) -> None:
        if isinstance(event, MessageEnd) and isinstance(event.message, CustomMessage) and event.message.display:
            self._services.outbox.look(self.address)
        self._runs.on_event(event)
        self._summing_up.on_event(event)
        self._services.publish(self.address, event)

    # What commands and the host ask of a conversation

    async def say(
        self,
        text: str,
        *,
        buttons: Sequence[Sequence[Button]] = (),
        files: Sequence[OutboundFile] = (),
        answers: Sequence[str] = (),
    ) -> None:
        """Put a text into the chat; within a command the first one answers it."""
        await self._voice.say(text, buttons=buttons, files=files, answers=answers)

    async def _answer(self, text: str, answers: tuple[str, ...]) -> None:
        await self.say(text, answers=answers)

    async def answer_question(self, question_id: str, number: str, person: Person, *, owner: bool, group: bool) -> None:
        """Take a button's answer to a question of this chat.

        Raises:
            UserMustAct: it is not for this person, or too late.
        """
        await self._questions.press(question_id, number, person, owner=owner, group=group)

    async def session(self) -> AgentSession:
        """The session of this address, opened or made if need be."""
        self.last_used = self._services.clock.monotonic()
        return await self._seat.get()

    async def extensions(self) -> Sequence[LoadedExtension]:
        """Those of this address's session. What has changed is taken up first, if nothing goes on."""
        self.last_used = self._services.clock.monotonic()
        return await self._seat.extensions()

    async def take_up_extensions(self) -> None:
        """Load extensions of this chat again, after stopping the run."""
        await self.stop()
        await self._seat.reload()

    async def extension_commands(self) -> Sequence[ChatCommand]:
        """The commands that the extensions of this address's session bring."""
        await self.session()
        return self._extensions.commands()

    async def extension_models(self) -> Sequence[Model]:
        """The models that they bring."""
        return (await self.session()).brought_models

    async def stop(self) -> StopReport:
        """Stop what is going on, at once; what waits is kept and answered next."""
        kept = self._waiting
        moving = self.moves.cancel()
        apart = self._services.stop_apart is not None and await self._services.stop_apart(self.address)
        return StopReport(was_running=await self._halt() or moving or apart, kept=kept)

    async def revoke(self, person_or_place: str) -> None:
        """Stop what goes on for somebody who may not talk any more."""
        turns = [turn for turn in (self._runs.turn if self.running else None, *self._pending.handed) if turn is not None]
        if person_or_place == str(self.place) or any(person_or_place in turn.people for turn in turns):
            await self._halt()

    async def _halt(self) -> bool:
        """Stop the run and what is being prepared for one; whether there was anything to stop."""
        session = self._seat.current
        was_running = self._runs.active or self._preparation.active or (session is not None and session.compacting)
        self._preparation.cancel()
        await self._runs.halt()
        if session is not None and session.compacting:
            await session.abort()
        return was_running

    async def _answer_again(self, session: AgentSession, owner: bool) -> None:
        """Start a run without a new prompt; its answer answers the command that asked for it."""
        self._runs.again(session, self._voice.hand_over(), await self.settings(), self._questions.asker_now, owner=owner)

    @property
    def _waiting(self) -> int:
        session = self._seat.current
        return len(self._line) + len(self._pending.held) + (len(session.queued) if session is not None else 0)

    def status(self) -> ConversationStatus:
        session = self._seat.current
        return ConversationStatus(
            running=self._runs.active,
            queued=self._waiting,
            running_tools=self._runs.running_tools(),
            model=session.model.reference if session is not None else "",
            context_tokens=session.context_tokens() if session is not None else 0,
            context_window=session.model.context_window if session is not None else 0,
            session_id=session.id if session is not None else None,
            session_name=session.name if session is not None else "",
        )

    async def set_model(self, reference: str) -> None:
        """Switch this session, and those that begin here from now on.

        Raises:
            UserMustAct: there is no such model.
        """
        session = await self._seat.get()
        await session.set_model(reference)
        await self._services.settings.change(self.place, model=session.model.reference)

    async def set_thinking(self, level: ThinkingLevel) -> None:
        await (await self._seat.get()).set_thinking(level)
        await self._services.settings.change(self.place, thinking=level)

    async def compact(self, instructions: str = "") -> str:
        """Sum up the older part of the conversation; gives what to say about it. While a run goes on that is done in its next pause.

        Raises:
            PumiceError: nothing was summed up; the text is for the person.
        """
        return await self._summing_up.compact(await self.moves.there(), instructions)

    async def settings(self) -> ChatSettings:
        """The place's settings as they are now."""
        return await self._services.settings.get(self.place)

    # The end

    def leave(self) -> None:
        """Begin nothing more; what waits stays in the inbox."""
        self._leaving = True
        self._line.changed.set()

    async def settled(self) -> None:
        """Wait until the run that is going on has ended."""
        await self._runs.settled()

    async def park(self) -> None:
        """Cut the run so that the next start of the host takes it up again."""
        self._runs.books.parked = True
        await self._runs.halt()

    async def close(self, reason: Literal["quit", "evict"] = "quit") -> None:
        self.leave()
        self._runs.books.parked = True  # what is cut here is not answered
        await self._errands.close()
        await self._seat.close(reason)
