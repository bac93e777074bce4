"""What a place can use at a moment: its skills and templates, those of the host, and what waits for a word."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from xml.sax.saxutils import escape

import msgspec

from features.skills.records import Problem, Skill, Template
from features.skills.templates import expand, split_arguments

__all__ = ["Invocation", "Item", "SkillShelf"]

Item = Skill | Template

_CALL = re.compile(r"\s*/(?P<skill>skill:)?(?P<name>[^\s/@:]{1,200})(?:@[A-Za-z0-9_]+)?(?:\s+(?P<arguments>.*))?", re.DOTALL)
_QUOTES = {'"': "&quot;", "'": "&apos;"}


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was typed. ``item`` is None where a skill is named that is not there; ``waiting``: nobody has consented to it yet."""

    name: str
    arguments: str
    item: Item | None
    waiting: bool = False


class SkillShelf(msgspec.Struct, frozen=True, kw_only=True):
    """Names are unique within ``skills`` and within ``templates``. ``refused`` is what somebody did not want, with the content it has."""

    skills: tuple[Skill, ...] = ()
    templates: tuple[Template, ...] = ()
    waiting: tuple[Item, ...] = ()
    refused: tuple[Item, ...] = ()
    problems: tuple[Problem, ...] = ()

    def find(self, text: str) -> Invocation | None:
        """What a text calls: ``/skill:name``, or ``/name`` of a template, else of a skill. None where it calls nothing that is known."""
        call = _CALL.fullmatch(text)
        if call is None:
            return None
        name, arguments = call["name"], (call["arguments"] or "").strip()
        usable: list[Item] = [*([] if call["skill"] else self.templates), *self.skills]
        waiting = [item for item in self.waiting if not call["skill"] or item.kind == "skill"]
        if (item := _named(usable, name)) is not None:
            return Invocation(name=name, arguments=arguments, item=item)
        if (item := _named(waiting, name)) is not None:
            return Invocation(name=name, arguments=arguments, item=item, waiting=True)
        return Invocation(name=name, arguments=arguments, item=None) if call["skill"] else None

    def expanded(self, text: str) -> str | None:
        """What a call stands for, once: a call in the result is plain text. None where the text calls nothing that may be used."""
        called = self.find(text)
        if called is None or called.waiting or called.item is None:
            return None
        if isinstance(called.item, Template):
            return expand(called.item.body, split_arguments(called.arguments))
        return _skill_text(called.item, called.arguments)

    def suggest(self, name: str) -> str | None:
        near = get_close_matches(name, [skill.name for skill in self.skills], n=1)
        return near[0] if near else None

    def prompt_section(self, tools: Collection[str]) -> str:
        """What the model is told: which skills there are, and no more until it reads one. Empty without the tool that reads."""
        if "read" not in tools:
            return ""
        parts = []
        offered = [skill for skill in self.skills if not skill.hidden]
        if offered:
            parts.append(
                "Each skill is a file with instructions for one kind of task. When a task fits a description, read that file with `read` "
                "before you begin, and follow it. Relative paths in it start at the folder that the file is in."
            )
            parts.append("\n".join(["<available_skills>", *(_entry(skill) for skill in offered), "</available_skills>"]))
        if "write" in tools:
            parts.append(
                "To keep a way of working for later, write it as `skills/NAME/SKILL.md`: front matter with `name` (the folder's) and "
                "`description` (when to use it), then the instructions. The person is asked before it is used."
            )
        return "\n\n".join(parts)


def _named(items: Collection[Item], name: str) -> Item | None:
    """By the name, or by the form of it that platforms' menus can show."""
    exact = next((item for item in items if item.name == name), None)
    wanted = name.lower().replace("_", "-")
    return exact or next((item for item in items if item.name.lower().replace("_", "-") == wanted), None)


def _entry(skill: Skill) -> str:
    facts = (("name", skill.name), ("description", skill.description), ("location", skill.file.as_posix()))
    lines = [f"    <{key}>{escape(value, _QUOTES)}</{key}>" for key, value in facts]
    return "\n".join(["  <skill>", *lines, "  </skill>"])


def _skill_text(skill: Skill, arguments: str) -> str:
    head = f'<skill name="{escape(skill.name, _QUOTES)}" location="{escape(skill.file.as_posix(), _QUOTES)}">'
    text = f"{head}\nRelative paths start at {skill.file.parent.as_posix()}.\n\n{skill.body}\n</skill>"
    return f"{text}\n\n{arguments}" if arguments else text
