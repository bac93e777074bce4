"""The entry type of the slice."""

from features.contracts.errors import UserMustAct
from features.contracts.extension_events import ExtensionEvent, SessionStarted, TreeMoved
from features.contracts.extensions import CommandResult, ExtensionApi, ExtensionCommand, ExtensionSpec

__all__ = ["Pins"]

_KEY = "pins"
_CONTEXT = "rules"
_MOST = 32
_LONGEST = 1000
_HEADING = "# Pinned by the people in this chat\n\nThese hold throughout, whatever else has been said or summed up:\n\n"


class Pins:
    """Pins are one-line texts, numbered from 1 in the order they came: 32 at most, of 1,000 characters."""

    def spec(self) -> ExtensionSpec:
        return ExtensionSpec(name="pins", activate=_activate)


async def _activate(api: ExtensionApi) -> None:
    board = _Board(api)

    async def mend(event: ExtensionEvent) -> None:
        await board.show_model()

    api.on(SessionStarted, mend)
    api.on(TreeMoved, mend)
    api.register_command(
        ExtensionCommand(
            name="pin",
            description="Pins a rule: /pin TEXT, /pin lists, /pin remove N.",
            run=board.command,
            complete=board.complete,
        )
    )


class _Board:
    def __init__(self, api: ExtensionApi) -> None:
        self._api = api

    @property
    def pins(self) -> list[str]:
        """Those of the present branch."""
        return [str(pin) for pin in self._api.state(_KEY, [])]

    async def command(self, arguments: str) -> CommandResult:
        words = arguments.split()
        if not words:
            return CommandResult(text=self._listed())
        if words[0] == "remove" and len(words) <= 2:
            return CommandResult(text=await self._remove(words[1] if len(words) == 2 else ""))
        return CommandResult(text=await self._add(" ".join(words)))

    def complete(self, typed: str) -> list[str]:
        return [f"remove {number}" for number in range(1, len(self.pins) + 1)]

    async def show_model(self) -> None:
        """Put the pins into what the model reads; costs nothing where they are there already."""
        pins = self.pins
        text = _HEADING + "\n".join(f"- {pin}" for pin in pins) if pins else None
        await self._api.model_context(_CONTEXT, text, place="system_prompt")

    async def _add(self, text: str) -> str:
        pins = self.pins
        if len(text) > _LONGEST:
            raise UserMustAct(f"That has {len(text):,} characters; a pin may have {_LONGEST:,}. A file in the workspace holds more.")
        if text in pins:
            return f"That is pinned already, as number {pins.index(text) + 1}."
        if len(pins) >= _MOST:
            raise UserMustAct(f"There are {_MOST} pins, and no more fit. Take one away with `/pin remove N`.")
        await self._keep([*pins, text])
        return f"Pinned as number {len(pins) + 1}."

    async def _remove(self, number: str) -> str:
        pins = self.pins
        if not pins:
            raise UserMustAct("Nothing is pinned here.")
        if not number.isascii() or not number.isdecimal() or not 1 <= int(number) <= len(pins):
            raise UserMustAct(f"Which one? `/pin remove N` takes a number from 1 to {len(pins)}; `/pin` lists them.")
        gone = pins.pop(int(number) - 1)
        await self._keep(pins)
        return f"No longer pinned: {gone}"

    async def _keep(self, pins: list[str]) -> None:
        await self._api.set_state(_KEY, pins)
        await self.show_model()

    def _listed(self) -> str:
        lines = [f"{number}. {pin}" for number, pin in enumerate(self.pins, 1)]
        return "\n".join(lines) or "Nothing is pinned here. `/pin TEXT` pins a rule that I keep to, also after a long conversation."
