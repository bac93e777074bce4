"""What becomes of a turn: a command, a question to a skill, a part of the run that goes on, or a run of its own."""

from collections.abc import Callable

from bot.conversations.command_desk import CommandDesk
from bot.conversations.extension_desk import ExtensionDesk
from bot.conversations.pending import Pending
from bot.conversations.preparation import Preparation
from bot.conversations.runs import Runs
from bot.conversations.services import ConversationServices
from bot.conversations.session_seat import SessionSeat
from bot.conversations.skill_desk import SkillDesk
from bot.conversations.turn import Turn
from bot.conversations.voice import Voice
from bot.delivery.inbox import StoredMessage, UnfinishedTurn
from bot.delivery.outbox import CutRun
from bot.settings import ChatSettings
from features.contracts.chat import Address, DueRun
from features.contracts.errors import OperatorMustAct, PumiceError, SessionBusyError

__all__ = ["TurnDesk"]

_NOTHING_TO_READ = "There was nothing in that message that I can read. Write me a text, or send a file."
_EDITED_COMMAND = "An edited message is no command for me. Send it as a new one."
_NOT_ADMITTED = "Whoever asked may not talk to me any more, so I did not finish."
_SESSION_GONE = "The session that was at work here is no longer there, so I could not finish. Please ask again."


class TurnDesk:
    """Deals with one turn after the other, as the conversation's actor hands them over.

    Args:
        leaving: whether the host stops, so that nothing is to be begun any more.
    """

    def __init__(
        self,
        address: Address,
        services: ConversationServices,
        voice: Voice,
        *,
        commands: CommandDesk,
        skills: SkillDesk,
        extensions: ExtensionDesk,
        pending: Pending,
        preparation: Preparation,
        seat: SessionSeat,
        runs: Runs,
        leaving: Callable[[], bool],
    ) -> None:
        self._address = address
        self._services = services
        self._voice = voice
        self._commands = commands
        self._skills = skills
        self._extensions = extensions
        self._pending = pending
        self._preparation = preparation
        self._seat = seat
        self._runs = runs
        self._leaving = leaving

    async def take(self, turn: Turn) -> None:
        """
        Raises:
            PumiceError: it came to nothing; the text is for the person.
        """
        stored = turn.messages[0]
        if not await self._heard(turn):
            return
        if self._seat.current is None and self._commands.is_unknown(stored):
            await self._seat.get()  # it may be an extension's
        if turn.run is not None:
            await self._take_scheduled(turn, turn.run)
        elif turn.apart:
            await self._take_extensions_wish(turn)
        elif stored.message.kind in ("edit", "deletion"):
            await self._edit(stored)
        elif (parsed := self._commands.parse(stored)) is not None:
            await self._commands.act_in_turn(stored, *parsed)
        elif (reply := await self._skills.look_at(turn)) is not None:
            await self._voice.say(reply.text, buttons=reply.buttons, answers=turn.ids)
        elif not turn.calls and (near := self._commands.mistyped(stored)) is not None:
            await self._voice.say(f"There is no such command. Did you mean /{near}?", answers=turn.ids)
        elif turn.withdrawn:
            await self._services.inbox.close_without_answer(turn.ids, skipped=True)
        elif turn.empty:
            await self._voice.say(_NOTHING_TO_READ, answers=turn.ids)
        elif self._runs.active:
            await self._join(turn, (await self._settings()).busy)
        elif await self._preparation.ready(turn):
            await self._begin(turn)

    async def _take_scheduled(self, turn: Turn, run: DueRun) -> None:
        """A text is said at once; a prompt waits for what goes on, and joins nothing."""
        if run.mode == "text":
            text = "\n\n".join(part for part in (run.heading, turn.first.text) if part)
            await self._voice.say(text, buttons=run.buttons, answers=turn.ids)
            self._services.ended(turn.ids, "done", "")
        elif self._runs.active:
            self._pending.held.append(turn)
        elif await self._preparation.ready(turn):
            await self._begin(turn)
        else:
            self._services.ended(turn.ids, "stopped", "")

    async def _take_extensions_wish(self, turn: Turn) -> None:
        """It waits for what goes on, and joins nothing."""
        if self._runs.active:
            self._pending.held.append(turn)
        elif not await self._extensions.is_over(turn, await self._seat.get()) and await self._preparation.ready(turn):
            await self._begin(turn)

    async def _edit(self, stored: StoredMessage) -> None:
        if self._services.commands.looks_like_command(stored.message.text):
            await self._voice.say(_EDITED_COMMAND, answers=(stored.id,))
            return
        taken_in = self._runs.books.message_ids if self._runs.active else ()
        turn = await self._pending.edit(stored, self._seat.current, taken_in)
        if turn is None:
            return
        if turn.notes and self._runs.active:
            await self._join(turn, "steer")
        else:
            await self.take(turn)

    async def _heard(self, turn: Turn) -> bool:
        """Whether everybody who said it may still talk here; what somebody said who may not is dropped."""
        spoken = [stored for stored in turn.messages if stored.message.kind not in ("job", "extension")]
        if all(self._admits(each.message.sender.id, group=each.message.group, owner=each.owner) for each in spoken):
            return True
        await self._services.inbox.close_without_answer(turn.ids, skipped=True)
        self._services.ended(turn.ids, "stopped", "")
        return False

    def _admits(self, person: str, *, group: bool, owner: bool) -> bool:
        return self._services.still_admits(person, self._address, group, owner)

    async def _begin(self, turn: Turn) -> None:
        if self._leaving():
            return
        settings = await self._settings()
        session = await self._seat.get()
        if await self._heard(turn):  # again: preparing takes its time
            self._runs.start(session, turn, settings)

    async def _join(self, turn: Turn, busy: str) -> None:
        """A message while a run is going on."""
        if busy in ("follow_up", "collect"):
            self._pending.held.append(turn)
            return
        if not await self._preparation.ready(turn):
            return
        if busy == "interrupt":
            await self._runs.halt()
            await self._begin(turn)
            return
        if not await self._heard(turn):
            return
        session = self._seat.current
        # No await between this look and the session's own: the message joins the run or is held for the next one, never both.
        if session is None or not session.running:
            self._pending.held.append(turn)
            return
        self._pending.handed.append(turn)
        try:
            await session.prompt(turn.prompt(), when_busy="steer")
        except SessionBusyError:
            self._pending.handed.remove(turn)
            self._pending.held.append(turn)

    async def resume(self, unfinished: UnfinishedTurn, cut: CutRun) -> None:
        """Go on with a run that an earlier process did not finish."""
        people = [person for person in unfinished.people if person.startswith(f"{self._address.channel}:")]
        if not all(self._admits(person, group=unfinished.group, owner=unfinished.owner) for person in people):
            await self._voice.say(_NOT_ADMITTED, answers=unfinished.message_ids)
            return
        try:
            session = await self._seat.get()
        except OperatorMustAct:
            raise
        except PumiceError as error:
            await self._voice.say(str(error), answers=unfinished.message_ids)
            return
        if session.id != unfinished.session_id:
            await self._voice.say(_SESSION_GONE, answers=unfinished.message_ids)
            return
        self._runs.resume(session, unfinished, cut, await self._settings())

    async def _settings(self) -> ChatSettings:
        return await self._services.settings.get(self._address.place)
