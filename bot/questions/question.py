"""One question, and what counts as an answer to it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from bot.chat_commands.markdown import one_line
from features.contracts.chat import Button

__all__ = ["MOST_BUTTONS", "NO", "YES", "Question"]

YES, NO = "Yes", "No"
MOST_BUTTONS = 20
_LONGEST_LABEL = 60
_SHORT_LABEL = 14
_AGREEING = frozenset({"yes", "y", "ok", "okay", "allow"})
_REFUSING = frozenset({"no", "n", "deny"})


class Question:
    """A question that somebody waits on.

    Args:
        text: the question as the chat shows it.
        options: what may be chosen; none for a question that any text answers.
        owners_only: options that owners alone may take.
        people: whoever may answer beside the owners.
        asked_at: what was written before it is no answer.
    """

    def __init__(
        self, question_id: str, text: str, options: Sequence[str], *, owners_only: Sequence[str], people: frozenset[str], asked_at: datetime
    ) -> None:
        self.id = question_id
        self.text = text
        self.options = tuple(options)
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.taking = asyncio.Lock()
        self.refused: set[str] = set()
        self._owners_only = frozenset(owners_only)
        self._people = people
        self._asked_at = asked_at.replace(microsecond=0)  # platforms tell whole seconds

    @property
    def taken(self) -> bool:
        """Whether it has an answer, or one is being written down."""
        return self.answer.done() or self.taking.locked()

    def may_answer(self, person: str, *, owner: bool) -> bool:
        return owner or person in self._people

    def may_take(self, option: str, *, owner: bool) -> bool:
        return owner or option not in self._owners_only

    def came_before(self, sent_at: datetime) -> bool:
        """Whether something was said before this was asked."""
        return sent_at < self._asked_at

    def chosen(self, number: str) -> str | None:
        """The option that a button's number means."""
        return self.options[int(number) - 1] if number.isdecimal() and 1 <= int(number) <= len(self.options) else None

    def understood(self, typed: str) -> str | None:
        """The option that somebody typed: its number, its words or the first of them, or a plain yes or no.

        What could be two options is neither; but a word that they share never means one that is kept for owners.
        """
        said = typed.strip().rstrip(".!").casefold()
        if not self.options:
            return typed.strip() or None
        if said.isdecimal():
            return self.chosen(said)
        whole = [option for option in self.options if option.casefold() == said]
        return whole[0] if whole else self._by_first_word(said)

    def _by_first_word(self, said: str) -> str | None:
        meant = next((words for words in (_AGREEING, _REFUSING) if said in words), frozenset({said}))
        found = [option for option in self.options if option.split()[0].strip(",.!").casefold() in meant]
        if len(found) > 1:
            found = [option for option in found if option not in self._owners_only]
        return found[0] if len(found) == 1 else None

    def buttons(self) -> tuple[tuple[Button, ...], ...]:
        """Short ones side by side; none where there are too many to press."""
        if len(self.options) > MOST_BUTTONS:
            return ()
        made = [
            Button(label=one_line(option, limit=_LONGEST_LABEL), command=f"/answer {self.id} {number}")
            for number, option in enumerate(self.options, 1)
        ]
        if len(made) <= 3 and all(len(button.label) <= _SHORT_LABEL for button in made):
            return (tuple(made),) if made else ()
        return tuple((button,) for button in made)
