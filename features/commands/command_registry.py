"""The known commands."""

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Generic, TypeVar

from features.contracts.chat import ChatCommand

__all__ = ["Command", "CommandRegistry"]

C = TypeVar("C")

_WRITTEN = re.compile(r"\s*/(?P<name>[A-Za-z][A-Za-z0-9_]*)(?:@[A-Za-z0-9_]+)?(?:\s+(?P<arguments>.*))?\s*", re.DOTALL)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_LONGEST_MENU_DESCRIPTION = 256


@dataclass(frozen=True, slots=True)
class Command(Generic[C]):
    """Something a person can say with a slash.

    Args:
        name: 1 to 32 of ``a-z 0-9 _``, the form every platform's menu takes.
        usage: the arguments as help shows them, like ``[name]``; empty for none.
        description: one line, at most 256 characters.
        run: gets the conversation's context and the arguments as they were typed, trimmed.
        control: may run while the conversation is busy, outside its queue.
        hidden: works, and is in no list.
        late: is carried out however late it comes, also after a restart, because it says itself when it is too late.
    """

    name: str
    usage: str
    description: str
    run: Callable[[C, str], Awaitable[None]]
    control: bool = False
    owner_only: bool = False
    hidden: bool = False
    late: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no command name; use 1 to 32 of a-z, 0-9 and _, a letter first")
        if not 0 < len(self.description) <= _LONGEST_MENU_DESCRIPTION:
            raise ValueError(f"the description of /{self.name} must have 1 to {_LONGEST_MENU_DESCRIPTION} characters")

    @property
    def written(self) -> str:
        """The command with its arguments, as people type it."""
        return f"/{self.name} {self.usage}".rstrip()


class CommandRegistry(Generic[C]):
    """Finds commands by what was typed.

    Raises:
        ValueError: two commands have the same name.
    """

    def __init__(self, commands: Iterable[Command[C]]) -> None:
        self._commands: dict[str, Command[C]] = {}
        for command in commands:
            if command.name in self._commands:
                raise ValueError(f"there are two commands named /{command.name}")
            self._commands[command.name] = command

    def parse(self, text: str) -> tuple[Command[C], str] | None:
        """The command and its arguments; None where ``text`` is none or names one that is not there."""
        written = self.split(text)
        if written is None:
            return None
        command = self._commands.get(written[0])
        return (command, written[1]) if command else None

    def split(self, text: str) -> tuple[str, str] | None:
        """Name and arguments of what has the form of a command, known or not."""
        written = _WRITTEN.fullmatch(text)
        return (written["name"].lower(), (written["arguments"] or "").strip()) if written else None

    def looks_like_command(self, text: str) -> bool:
        """Whether ``text`` has the form of a command, known or not; a path like ``/usr/bin`` has not."""
        return _WRITTEN.fullmatch(text) is not None

    def suggest(self, name: str) -> str | None:
        """The known name nearest to a mistyped one, with or without its slash and arguments."""
        words = name.split()
        if not words:
            return None
        typed = words[0].lstrip("/").partition("@")[0].lower()
        visible = [command.name for command in self._commands.values() if not command.hidden]
        near = get_close_matches(typed, visible, n=1, cutoff=0.6)
        if near:
            return near[0]
        begun = [known for known in visible if typed and known.startswith(typed)]
        return begun[0] if len(begun) == 1 else None

    def help_text(self, owner: bool, name: str | None = None) -> str:
        """Markdown: the list of commands, or one of them. What only owners may do is shown to owners alone."""
        if name is not None:
            return self._help_for(name, owner=owner)
        return "\n".join(f"- `{command.written}` {command.description}" for command in self._visible(owner=owner))

    def menu(self) -> list[ChatCommand]:
        """What a platform's menu and a terminal's completion show."""
        return [ChatCommand(name=command.name, description=command.description) for command in self._visible(owner=True)]

    def _help_for(self, name: str, *, owner: bool) -> str:
        typed = name.strip().lstrip("/").lower()
        command = self._commands.get(typed)
        if command is None or (command.owner_only and not owner):
            near = self.suggest(typed) if command is None else None
            shown = typed.replace("`", "")[:32]
            return f"There is no command `/{shown}`." + (f" Did you mean `/{near}`?" if near else " `/help` lists them all.")
        note = "\nOnly owners may use it." if command.owner_only else ""
        return f"`{command.written}`\n{command.description}{note}"

    def _visible(self, *, owner: bool) -> list[Command[C]]:
        return [command for command in self._commands.values() if not command.hidden and (owner or not command.owner_only)]
