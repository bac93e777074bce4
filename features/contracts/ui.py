"""Asking the person in the chat."""

from collections.abc import Sequence
from typing import Literal, Protocol

__all__ = ["UserInterface"]


class UserInterface(Protocol):
    """Contract.

    - A question that nobody answers in ``timeout_s`` gives the safe answer: False, or None. So does a chat without a person.
    - A question ends as soon as the task that asks is cancelled; its buttons then say that it is over.
    - ``status`` keeps one short line per key beside what the chat shows while it works; None takes it away.
    - In a group, whoever started the run or an owner may answer; an option among ``owners_only`` can be taken by owners alone.
    - ``interactive`` is False where nobody is there to ask; every question then gets the safe answer at once.
    """

    @property
    def interactive(self) -> bool: ...

    async def confirm(self, title: str, message: str = "", *, timeout_s: float | None = None) -> bool: ...

    async def select(
        self, title: str, options: Sequence[str], *, timeout_s: float | None = None, owners_only: Sequence[str] = ()
    ) -> str | None: ...

    async def input(self, title: str, placeholder: str = "", *, timeout_s: float | None = None) -> str | None: ...

    def status(self, key: str, text: str | None) -> None: ...

    async def notify(self, message: str, kind: Literal["info", "warning", "error"] = "info") -> None: ...
