"""Skills and templates in a conversation: which message calls one, and what waits for the person's word."""

from collections.abc import Sequence

import msgspec

from bot.conversations.turn import Turn
from bot.conversations.voice import Voice
from bot.skill_texts import consent_question
from features.contracts.chat import Address, Button
from features.skills import SkillCatalog

__all__ = ["SkillDesk", "SkillReply"]


class SkillReply(msgspec.Struct, frozen=True, kw_only=True):
    """What is said instead of an answer."""

    text: str
    buttons: Sequence[Sequence[Button]] = ()


class SkillDesk:
    def __init__(self, place: Address, catalog: SkillCatalog, voice: Voice) -> None:
        self._place = place
        self._catalog = catalog
        self._voice = voice

    async def look_at(self, turn: Turn) -> SkillReply | None:
        """Note in the turn whether it calls something; what to say if that cannot be used."""
        turn.calls = False
        if not turn.text.lstrip().startswith("/"):
            return None
        shelf = await self._catalog.look(self._place)
        called = shelf.find(turn.text)
        if called is None:
            return None
        if called.item is None:
            near = shelf.suggest(called.name)
            hint = f" Did you mean `/skill:{near}`?" if near is not None else " `/skills` lists what there is."
            return SkillReply(text=f"There is no skill `{called.name.replace('`', '')}`.{hint}")
        if called.waiting:
            text, buttons = consent_question(called.item, group=turn.first.group)
            return SkillReply(text=text, buttons=(buttons,))
        turn.calls = True
        return None

    async def ask(self, *, group: bool) -> None:
        """Ask about what has come into the place's folder, once for each content."""
        for item in await self._catalog.questions(self._place):
            text, buttons = consent_question(item, group=group)
            await self._voice.say(text, buttons=(buttons,))
