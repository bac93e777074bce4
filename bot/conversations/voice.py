"""What the host itself says in a chat."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from bot.delivery import Outbox
from features.contracts.chat import Address, Button, OutboundFile, OutboundMessage

__all__ = ["Voice"]

_answering: ContextVar[list[str] | None] = ContextVar("answering", default=None)


class Voice:
    """Speaks through the outbox of one address."""

    def __init__(self, address: Address, outbox: Outbox) -> None:
        self._address = address
        self._outbox = outbox

    async def say(
        self,
        text: str,
        *,
        buttons: Sequence[Sequence[Button]] = (),
        files: Sequence[OutboundFile] = (),
        answers: Sequence[str] = (),
        only_for: str | None = None,
    ) -> None:
        """
        Args:
            only_for: the person of a group whom it concerns alone.
        """
        asked = _answering.get()
        if asked:
            answers = (*answers, *asked)
            asked.clear()
        message = OutboundMessage(text=text, files=tuple(files), buttons=tuple(tuple(row) for row in buttons), only_for=only_for)
        await self._outbox.post(self._address, message, answers=tuple(answers))

    async def aside(self, text: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None:
        """Say something that answers nothing, also within a command."""
        token = _answering.set(None)
        try:
            await self.say(text, buttons=buttons)
        finally:
            _answering.reset(token)

    def hand_over(self) -> tuple[str, ...]:
        """The message that would be answered by what is said next: somebody else answers it."""
        asked = _answering.get() or []
        handed = tuple(asked)
        asked.clear()
        return handed

    @contextmanager
    def answering(self, message_id: str) -> Iterator[list[str]]:
        """What is said first within answers this message; the list is empty once that has happened."""
        asked = [message_id]
        token = _answering.set(asked)
        try:
            yield asked
        finally:
            _answering.reset(token)
