"""Skills and prompt templates of a chat: what there is, what is wrong with it, and whether it may be used."""

from difflib import get_close_matches
from typing import Literal

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code
from bot.skill_texts import skill_content, skill_list
from features.contracts.errors import UserMustAct
from features.skills import Skill, SkillShelf, Template

__all__ = ["skills"]

_ACTIONS = ("show", "allow", "refuse")


async def skills(context: CommandContext, arguments: str) -> None:
    if not arguments:
        await context.services.skills.questions(context.conversation.place)  # what is shown with its buttons counts as asked about
        shelf = await context.services.skills.look(context.conversation.place)
        text, rows = skill_list(shelf, group=context.group)
        await context.say(text, *rows)
        return
    action, *words = arguments.split()
    if action not in _ACTIONS:
        near = get_close_matches(action, _ACTIONS, n=1)
        hint = f" Did you mean `/skills {near[0]}`?" if near else ""
        raise UserMustAct(f"{code(action)} is none of {', '.join(_ACTIONS)}.{hint}")
    kind, name, key = _named(words)
    if action == "show":
        shelf = await context.services.skills.look(context.conversation.place)
        await context.say(skill_content(_found(shelf, kind, name)))
        return
    if context.group and not context.owner:
        raise UserMustAct("In a group only an owner may decide that.")
    item = await context.services.skills.decide(context.conversation.place, kind, name, key, allow=action == "allow", by=context.sender.id)
    if action == "refuse":
        await context.say(f"I will not use {code(item.name)}. `/skills` lets you change your mind.")
        return
    how = f"/skill:{item.name}" if item.kind == "skill" else f"/{item.name}"
    await context.say(f"{code(item.name)} may be used in this chat as it is now; if it changes, I ask again. Try `{how}`.")


def _named(words: list[str]) -> tuple[Literal["skill", "template"], str, str]:
    """Kind, name and key; a name alone is a skill's."""
    kind: Literal["skill", "template"] = "template" if words[:1] == ["template"] else "skill"
    if words and words[0] in ("skill", "template"):
        words = words[1:]
    if not words:
        raise UserMustAct("Which one? `/skills` lists them, with buttons.")
    return kind, words[0], words[1] if len(words) > 1 else ""


def _found(shelf: SkillShelf, kind: str, name: str) -> Skill | Template:
    everything = (*shelf.waiting, *shelf.skills, *shelf.templates, *shelf.refused)
    item = next((item for item in everything if item.kind == kind and item.name == name), None)
    if item is None:
        near = get_close_matches(name, [item.name for item in everything], n=1)
        raise UserMustAct(
            f"There is no {kind} {code(name)} here." + (f" Did you mean {code(near[0])}?" if near else " `/skills` lists them.")
        )
    return item
