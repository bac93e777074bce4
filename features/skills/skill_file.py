"""A SKILL.md, read and looked at: https://agentskills.io/specification."""

import re
from pathlib import Path
from typing import Any

from features.skills.front_matter import BrokenFrontMatter, split_front_matter
from features.skills.records import Origin, Skill, Template

__all__ = ["Broken", "read_skill", "read_template"]

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_SHOWN_OF_A_FIRST_LINE = 60
_SAYABLE = re.compile(r"[^\s/@<>&\"'`:]{1,200}")


class Broken(Exception):
    """It cannot be used; the text says why."""


def read_skill(text: str, file: Path, expected_name: str, *, origin: Origin) -> tuple[Skill, list[str]]:
    """The skill, without its digest, and what is wrong with it though it can be used.

    Args:
        expected_name: what its folder says that it is called.

    Raises:
        Broken: it is left out.
    """
    facts, body = _split(text)
    name = _text(facts, "name") or expected_name
    description = _text(facts, "description")
    if not description:
        raise Broken("description is required: say in the front matter when the skill is to be used")
    if not _SAYABLE.fullmatch(name):
        raise Broken(f"name {name[:80]!r} cannot be said as a command; use a-z, 0-9 and hyphens")
    problems = [*_name_problems(name, expected_name)]
    if len(description) > _LONGEST_DESCRIPTION:
        problems.append(f"description has {len(description)} characters, more than {_LONGEST_DESCRIPTION}; its beginning is used")
    hidden = _flag(facts, "disable-model-invocation") or _flag(facts, "disable_model_invocation")
    return Skill(name=name, description=description[:_LONGEST_DESCRIPTION], body=body, file=file, origin=origin, hidden=hidden), problems


def read_template(text: str, file: Path, *, origin: Origin) -> Template:
    """
    Raises:
        Broken: it is left out.
    """
    facts, body = _split(text)
    if not _SAYABLE.fullmatch(file.stem):
        raise Broken(f"{file.stem[:80]!r} cannot be said as a command; name the file with a-z, 0-9 and hyphens")
    if not body.strip():
        raise Broken("it is empty")
    return Template(
        name=file.stem,
        description=_one_line(_text(facts, "description")) or _first_line(body),
        hint=_one_line(_text(facts, "argument-hint"))[:_SHOWN_OF_A_FIRST_LINE],
        body=body.strip(),
        file=file,
        origin=origin,
    )


def _split(text: str) -> tuple[dict[str, Any], str]:
    try:
        return split_front_matter(text)
    except BrokenFrontMatter as error:
        raise Broken(str(error)) from None


def _name_problems(name: str, expected: str) -> list[str]:
    checks = (
        (name != expected, f"name {name!r} does not match parent directory {expected!r}"),
        (len(name) > _LONGEST_NAME, f"name exceeds {_LONGEST_NAME} characters ({len(name)})"),
        (not re.fullmatch(r"[a-z0-9-]+", name), f"name {name!r} has invalid characters; only a-z, 0-9 and hyphens are right"),
        (name.startswith("-") or name.endswith("-"), f"name {name!r} starts or ends with a hyphen"),
        ("--" in name, f"name {name!r} has consecutive hyphens"),
    )
    return [text for wrong, text in checks if wrong]


def _text(facts: dict[str, Any], key: str) -> str:
    value = facts.get(key)
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()


def _flag(facts: dict[str, Any], key: str) -> bool:
    value = facts.get(key)
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def _first_line(body: str) -> str:
    line = _one_line(next((line for line in body.splitlines() if line.strip()), ""))
    return line if len(line) <= _SHOWN_OF_A_FIRST_LINE else f"{line[:_SHOWN_OF_A_FIRST_LINE]}..."


def _one_line(text: str) -> str:
    return " ".join(text.split())
