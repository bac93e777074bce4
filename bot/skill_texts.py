"""Skills and templates as people read of them."""

from collections.abc import Iterable, Sequence

from bot.chat_commands.markdown import code, plain
from features.contracts.chat import Button
from features.skills import Skill, SkillShelf, Template

__all__ = ["consent_question", "skill_content", "skill_list"]

Item = Skill | Template
Rows = list[list[Button]]

_KEY_LENGTH = 12
_MOST_LISTED = 40
_MOST_ASKED = 6
_MOST_FILES = 12
_SHOWN_CHARS = 2500


def consent_question(item: Item, *, group: bool = False) -> tuple[str, list[Button]]:
    """What is asked about something new in the chat's folder, and the buttons to answer with."""
    what = f"{plain(item.description, limit=300)}"
    files = _files(item)
    who = " An owner decides." if group else ""
    text = (
        f"There is a new {item.kind} in this chat's folder, {code(item.name)}: {what}{files}\n\n"
        f"I use it once you allow it as it is now.{who} Look at it first if you did not ask for it."
    )
    key = item.digest[:_KEY_LENGTH]
    buttons = [
        Button(label=f"Show {item.name[:20]}", command=f"/skills show {item.kind} {item.name}"),
        Button(label="Allow", command=f"/skills allow {item.kind} {item.name} {key}"),
        Button(label="No", command=f"/skills refuse {item.kind} {item.name} {key}"),
    ]
    return text, buttons


def skill_list(shelf: SkillShelf, *, group: bool) -> tuple[str, Rows]:
    """All that there is, what is wrong with it, and buttons for what waits."""
    parts: list[str] = []
    if shelf.skills:
        parts.append(_section("**Skills**, said as `/skill:name` or used by me when they fit:", map(_line, shelf.skills)))
    if shelf.templates:
        parts.append(_section("**Templates**, said as `/name`:", map(_line, shelf.templates)))
    rows: Rows = []
    for item in shelf.waiting[:_MOST_ASKED]:
        text, buttons = consent_question(item, group=group)
        parts.append(text)
        rows.append(buttons)
    if len(shelf.waiting) > _MOST_ASKED:
        parts.append(f"{len(shelf.waiting) - _MOST_ASKED} more wait; say `/skills` again then.")
    if shelf.refused:
        parts.append("**Not wanted:** " + ", ".join(code(item.name) for item in shelf.refused[:_MOST_LISTED]))
        rows.append([_reconsider(item) for item in shelf.refused[:3]])
    if shelf.problems:
        lines = (
            f"{code(problem.path)}: {plain(problem.text, limit=300)}" + (" (left out)" if problem.fatal else "")
            for problem in shelf.problems
        )
        parts.append(_section("**Not as it should be:**", lines))
    if not parts:
        parts.append(
            "There are no skills and no templates. Put a folder with a `SKILL.md` into `skills/` of this chat's folder, or ask me to."
        )
    return "\n\n".join(parts), rows


def skill_content(item: Item) -> str:
    """The text that somebody is to consent to, in a fence that it cannot close."""
    body = (
        item.body if len(item.body) <= _SHOWN_CHARS else f"{item.body[:_SHOWN_CHARS]}\n… ({len(item.body) - _SHOWN_CHARS} characters more)"
    )
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{item.kind.capitalize()} {code(item.name)}: {plain(item.description, limit=1000)}{_files(item)}\n\n{fence}\n{body}\n{fence}"


def _section(title: str, lines: Iterable[str]) -> str:
    listed = list(lines)
    more = [f"- … and {len(listed) - _MOST_LISTED} more"] if len(listed) > _MOST_LISTED else []
    return "\n".join([title, *(f"- {line}" for line in listed[:_MOST_LISTED]), *more])


def _line(item: Item) -> str:
    where = " (of this chat)" if item.origin == "place" else ""
    hint = f" {plain(item.hint)}" if isinstance(item, Template) and item.hint else ""
    return f"{code(item.name)}{hint} {plain(item.description, limit=120)}{where}"


def _files(item: Item) -> str:
    """What else comes with it, scripts above all."""
    files: Sequence[str] = item.files if isinstance(item, Skill) else ()
    if len(files) < 2:
        return ""
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    return f"\nIts files: {', '.join(code(_shown(name)) for name in files[:_MOST_FILES])}{more}"


def _shown(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _reconsider(item: Item) -> Button:
    return Button(label=f"Allow {item.name[:20]}", command=f"/skills allow {item.kind} {item.name} {item.digest[:_KEY_LENGTH]}")


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
