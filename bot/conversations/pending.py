"""What waits for a run: turns, and notes for the next one."""

from collections import deque
from itertools import takewhile

import msgspec

from bot.conversations.turn import Turn, as_message, correction, late_edit_note
from bot.delivery.inbox import Inbox, StoredMessage
from features.agent import AgentSession
from features.contracts.agent import Prompt
from features.contracts.chat import Address

__all__ = ["Pending"]

MOST_HELD = 50
_MOST_REMARKS = 10


class Pending:
    """
    ``held`` are turns that wait here, in order; ``handed`` those that the session was given while a run went on.
    """

    def __init__(self, address: Address, inbox: Inbox) -> None:
        self.held: deque[Turn] = deque()
        self.handed: list[Turn] = []
        self._address = address
        self._inbox = inbox
        self._late_edits: list[StoredMessage] = []
        self._remarks: deque[str] = deque(maxlen=_MOST_REMARKS)

    @property
    def has_notes(self) -> bool:
        return bool(self._late_edits or self._remarks)

    @property
    def has_room(self) -> bool:
        return len(self.held) < MOST_HELD

    def remark(self, text: str) -> None:
        """Tell the model something with the next turn."""
        self._remarks.append(text)

    def dress(self, turn: Turn) -> None:
        """Put the notes that have gathered before a turn."""
        turn.notes += [late_edit_note(edit) for edit in self._late_edits]
        turn.edits += [edit.id for edit in self._late_edits]
        turn.notes += self._remarks
        self._late_edits.clear()
        self._remarks.clear()

    def next(self, *, all_at_once: bool) -> Turn | None:
        """The next turn; one that calls a skill or a template, or that nobody said, stays by itself."""
        if not self.held:
            return None
        turn = self.held.popleft()
        if all_at_once and turn.joinable:
            others = list(takewhile(lambda held: held.joinable, self.held))
            turn.takes_over(others)
            for _ in others:
                self.held.popleft()
        return turn

    def take_back(self, prompts: tuple[Prompt, ...]) -> None:
        """Hold again what the session was given and did not take in; it comes first."""
        left = {message_id for prompt in prompts for message_id in prompt.source_ids}
        self.held.extendleft(turn for turn in reversed(self.handed) if turn.ids[0] in left)
        self.handed.clear()

    async def edit(self, edit: StoredMessage, session: AgentSession | None, taken_in: tuple[str, ...]) -> Turn | None:
        """Work in an edit: in place where its message still waits, else as a note for the next turn.

        Args:
            taken_in: the messages that the run which is going on has taken in.

        Returns:
            what is to be dealt with like a message: a correction for the run, or an edit of something that was never said to us.
        """
        found = await self._inbox.find(self._address, edit.message.ref) if edit.message.ref is not None else None
        deleted = edit.message.kind == "deletion"
        if not deleted and (found is None or found[1] == "skipped"):
            return Turn([as_message(edit)])
        if found is None or found[1] == "skipped" or (not deleted and found[0].message.text == edit.message.text):
            await self._inbox.close_without_answer((edit.id,), skipped=True)
            return None
        original, _ = found
        changed = next((changed for turn in self.held if (changed := turn.edit(edit)) is not None), None)
        if changed is not None:
            await self._inbox.replace(changed)
        elif original.id in taken_in:
            return correction(edit)
        elif (changed := next((changed for turn in self.handed if (changed := turn.edit(edit)) is not None), None)) is not None:
            await self._hand_again(session)
            await self._inbox.replace(changed)
        else:
            self._late_edits.append(edit)
        return None

    async def _hand_again(self, session: AgentSession | None) -> None:
        """Give the session its queue anew, with the text that has changed."""
        if session is None or not session.running:
            return
        for prompt in session.take_queued():
            turn = next((turn for turn in self.handed if turn.ids[0] == prompt.source_ids[0]), None)
            again = prompt if turn is None else msgspec.structs.replace(turn.prompt(), heard=True)
            await session.prompt(again, when_busy="steer")
