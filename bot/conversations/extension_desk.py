"""Extensions of a conversation: their commands, and the runs they ask for."""

from collections.abc import Callable
from typing import Any, Protocol

from bot.conversations.services import ConversationServices
from bot.conversations.session_moves import SessionMoves
from bot.conversations.turn import Turn
from bot.conversations.voice import Voice
from bot.delivery.inbox import StoredMessage
from features.agent import AgentSession
from features.commands import Command
from features.contracts.agent import Prompt
from features.contracts.chat import Address, ChatCommand, InboundMessage, Person

__all__ = ["ExtensionDesk", "Seat"]


class Seat(Protocol):
    """As much of a conversation as extensions can change."""

    moves: SessionMoves

    async def take_up_extensions(self) -> None: ...


class ExtensionDesk:
    """Implements ``SessionHost``: what an extension wants said waits in the inbox like everything else, and is answered like it.

    Args:
        current: the session that has the seat, if it is open.
    """

    def __init__(
        self, address: Address, services: ConversationServices, voice: Voice, seat: Seat, current: Callable[[], AgentSession | None]
    ) -> None:
        self._address = address
        self._services = services
        self._voice = voice
        self._seat = seat
        self._current = current

    # Commands

    def commands(self) -> list[ChatCommand]:
        session = self._current()
        known = session.extensions.commands() if session is not None else ()
        return [ChatCommand(name=command.name, description=command.description) for command in known]

    def parse(self, stored: StoredMessage) -> tuple[Command[Any], str] | None:
        """The command of an extension that a message gives; it may run at once."""
        written = self._services.commands.split(stored.message.text)
        session = self._current()
        if written is None or session is None:
            return None
        name, arguments = written
        command = next((command for command in session.extensions.commands() if command.name == name), None)
        if command is None:
            return None

        async def run(context: Any, arguments: str) -> None:
            result = await session.extensions.run_command(name, arguments, owner=stored.owner)
            if result.text.strip():
                await self._voice.say(result.text)

        return Command(name, "", command.description, run, control=True), arguments

    # Runs

    async def prompt(self, prompt: Prompt, *, session_id: str, extension: str, id: str) -> None:
        """
        Raises:
            SessionBusyError: too many wait already.
        """
        message = InboundMessage(
            key=f"extension:{session_id}:{self._services.ids()}",
            address=self._address,
            sender=Person(id=f"extension:{extension}", name=extension),
            text=prompt.text,
            sent_at=self._services.clock.now(),
            kind="extension",
            ref=id,
            session=session_id,
        )
        await self._services.inbox.take_own(message, owner=prompt.owner)

    async def is_over(self, turn: Turn, session: AgentSession) -> bool:
        """Whether what an extension wanted has no place any more: its session is not at work, or there is nothing left to go on with.

        Otherwise a turn that goes on is noted as taken in, so that a crash finds it again.
        """
        ids, leaf = turn.ids, session.manager.leaf_id
        if turn.first.session != session.id or (turn.empty and not (session.unfinished and leaf)):
            await self._services.inbox.close_without_answer(ids, skipped=True)
            return True
        if turn.empty:
            await self._services.inbox.mark_consumed(ids, session_id=session.id, entry_id=leaf or "")
        return False

    # The session

    async def new_session(self, name: str) -> str:
        return await self._seat.moves.start_new(name)

    async def switch_session(self, session_id: str) -> None:
        await self._seat.moves.resume(session_id)

    async def reload(self) -> None:
        await self._seat.take_up_extensions()
