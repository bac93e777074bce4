"""Commands of one conversation: which text is one, which is too old to obey, and what happens when one fails."""

import logging
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bot.conversations.services import ConversationServices
from bot.conversations.voice import Voice
from bot.delivery.inbox import StoredMessage
from bot.questions import Asker, ChatQuestions
from features.commands import Command
from features.contracts.chat import Person
from features.contracts.errors import PumiceError

__all__ = ["CommandDesk", "defect_text"]

log = logging.getLogger("pumice.conversations")

_STALE_AFTER = timedelta(minutes=5)
_MOST_NAMED = 5


class CommandDesk:
    """
    Args:
        context: makes what a command is given.
        further: finds commands that are not the host's own.
        recovered_through: the position of the newest message that an earlier process accepted.
    """

    def __init__(
        self,
        services: ConversationServices,
        voice: Voice,
        questions: ChatQuestions,
        context: Callable[[Person, bool, bool], Any],
        *,
        further: Callable[[StoredMessage], tuple[Command[Any], str] | None],
        recovered_through: int,
    ) -> None:
        self._services = services
        self._voice = voice
        self._questions = questions
        self._context = context
        self._further = further
        self._recovered_through = recovered_through
        self._acted_on: deque[str] = deque(maxlen=100)
        self._skipped: list[StoredMessage] = []

    def parse(self, stored: StoredMessage) -> tuple[Command[Any], str] | None:
        message = stored.message
        if message.kind in ("edit", "extension", "job") or message.attachments:
            return None
        return self._services.commands.parse(message.text) or self._further(stored)

    def is_unknown(self, stored: StoredMessage) -> bool:
        """Whether a message has the form of a command and is none that is known by now."""
        message = stored.message
        return message.kind == "message" and self._services.commands.looks_like_command(message.text) and self.parse(stored) is None

    def mistyped(self, stored: StoredMessage) -> str | None:
        """The command that an unknown one was probably meant to be."""
        text = stored.message.text
        if stored.message.kind == "job" or stored.message.attachments or not self._services.commands.looks_like_command(text):
            return None
        return self._services.commands.suggest(text)

    def is_plain(self, stored: StoredMessage) -> bool:
        """Whether a message has not even the form of a command."""
        return not self._services.commands.looks_like_command(stored.message.text)

    def is_control(self, stored: StoredMessage) -> bool:
        parsed = self.parse(stored)
        return parsed is not None and parsed[0].control

    async def act_at_once(self, stored: StoredMessage) -> None:
        """Obey a control command outside the queue, if it is fresh."""
        self._acted_on.append(stored.id)
        parsed = self.parse(stored)
        assert parsed is not None
        if self._is_stale(stored) and not parsed[0].late:
            self._skipped.append(stored)
        else:
            await self._obey(stored, *parsed)

    async def act_in_turn(self, stored: StoredMessage, command: Command[Any], arguments: str) -> None:
        if stored.id in self._acted_on:
            return
        if not command.late and (self._is_stale(stored) or (command.control and self._is_recovered(stored))):
            self._skipped.append(stored)
        else:
            await self._obey(stored, command, arguments)

    @property
    def has_skipped(self) -> bool:
        return bool(self._skipped)

    async def say_what_was_skipped(self) -> None:
        """One message about all commands that were too old to obey."""
        skipped, self._skipped = self._skipped, []
        names = list(dict.fromkeys(stored.message.text.split()[0] for stored in skipped))
        shown = ", ".join(names[:_MOST_NAMED]) + (" and others" if len(names) > _MOST_NAMED else "")
        text = f"I was away when this arrived and did not carry it out: {shown}. Say it again if you still want it."
        await self._services.inbox.close_without_answer(tuple(stored.id for stored in skipped), skipped=True)
        await self._voice.say(text)

    def _is_recovered(self, stored: StoredMessage) -> bool:
        return stored.position <= self._recovered_through

    def _is_stale(self, stored: StoredMessage) -> bool:
        """Old when it reached us; waiting for its turn here does not make it older."""
        reached = self._services.clock.now() if self._is_recovered(stored) else stored.received_at
        return reached - stored.message.sent_at > _STALE_AFTER

    async def _obey(self, stored: StoredMessage, command: Command[Any], arguments: str) -> None:
        message = stored.message
        only_for = message.sender.id if message.group else None
        asker = Asker(people=frozenset({message.sender.id}), attended=message.attended)
        with self._voice.answering(stored.id) as unanswered, self._questions.on_behalf_of(asker):
            try:
                if command.owner_only and not stored.owner:
                    await self._voice.say(f"`/{command.name}` is for owners only.", only_for=only_for)
                    return
                await command.run(self._context(message.sender, stored.owner, message.group), arguments)
            except PumiceError as error:
                await self._voice.say(str(error), only_for=only_for)
            except Exception:
                error_id = self._services.ids()
                log.exception("command failed", extra={"facts": {"command": command.name, "error_id": error_id}})
                await self._voice.say(defect_text(error_id))
        if unanswered:
            await self._services.inbox.close_without_answer(tuple(unanswered), skipped=False)


def defect_text(error_id: str) -> str:
    return f"Something went wrong inside this host, and it is not your doing. Whoever runs it finds it in the log as {error_id}."
