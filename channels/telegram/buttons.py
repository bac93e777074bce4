"""Commands behind buttons. Telegram keeps 64 bytes per button, and gives them back when it is pressed."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

from channels.markup import clean
from channels.telegram.api import Keyboard
from features.contracts.chat import Button

__all__ = ["ButtonCodec"]

_MAX_BYTES = 64
_TEMPLATE = "=L:"  # the command with the label taken out
_KEPT = "=H:"  # the hash of a command that is kept here
_HOLE = "{}"
_REMEMBERED = 2000


class ButtonCodec:
    """A command that fits is the button's data. A longer one that holds the label is put together again from the label, which
    Telegram gives back with the message. The rest is remembered here by its hash, the latest 2,000, until the host restarts."""

    def __init__(self) -> None:
        self._commands: OrderedDict[str, str] = OrderedDict()

    def keyboard(self, rows: Iterable[Iterable[Button]]) -> Keyboard:
        keyboard = [
            [(label, self._encode(button.command, label)) for button in row if (label := clean(button.label).strip())] for row in rows
        ]
        return [row for row in keyboard if row]

    def command(self, data: str, label: str | None) -> str | None:
        """The command of a pressed button, None when it is known no more.

        Args:
            label: the button's, where the message is recent enough to be given back.
        """
        if data.startswith(_KEPT):
            return self._commands.get(data)
        if data.startswith(_TEMPLATE):
            return data.removeprefix(_TEMPLATE).replace(_HOLE, label, 1) if label is not None else None
        return data or None

    def _encode(self, command: str, label: str) -> str:
        command = clean(command)
        if _fits(command) and not command.startswith("="):
            return command
        template = _TEMPLATE + command.replace(label, _HOLE, 1)
        if _fits(template) and self.command(template, label) == command:
            return template
        key = _KEPT + hashlib.sha256(command.encode()).hexdigest()[:32]
        self._commands[key] = command
        self._commands.move_to_end(key)
        if len(self._commands) > _REMEMBERED:
            self._commands.popitem(last=False)
        return key


def _fits(data: str) -> bool:
    return 0 < len(data.encode()) <= _MAX_BYTES
