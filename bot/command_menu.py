"""What the platforms' menus and the page's completion show."""

from collections.abc import Callable, Sequence
from typing import Any

from features.commands import CommandRegistry
from features.contracts.chat import ChatCommand

__all__ = ["CommandMenu"]

_MOST_LEARNED = 40


class CommandMenu:
    """The host's own commands, and those of extensions of the whole host, which are known once a session with them has been opened.

    Args:
        changed: called when there are more than before.
    """

    def __init__(self, commands: CommandRegistry[Any], *, changed: Callable[[], None]) -> None:
        self._own = commands
        self._learned: dict[str, ChatCommand] = {}
        self._changed = changed

    def all(self) -> list[ChatCommand]:
        return [*self._own.menu(), *self._learned.values()]

    def learn(self, commands: Sequence[ChatCommand]) -> None:
        """Take up commands that a session has."""
        news = [command for command in commands if self._learned.get(command.name) != command]
        for command in news[: _MOST_LEARNED - len(self._learned)]:
            self._learned[command.name] = command
        if news:
            self._changed()
