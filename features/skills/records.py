"""What is found in the folders of skills and templates."""

from pathlib import Path
from typing import Literal

import msgspec

__all__ = ["Kind", "Origin", "Problem", "Skill", "Template"]

Origin = Literal["host", "place"]
Kind = Literal["skill", "template"]


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """``file`` is its SKILL.md, ``body`` what stands there behind the front matter.

    ``hidden`` ones are not offered to the model and used by their command alone. ``digest`` is over everything in its folder, empty for
    those of the host, which need no consent; ``files`` are the paths in it.
    """

    name: str
    description: str
    body: str
    file: Path
    origin: Origin
    hidden: bool = False
    digest: str = ""
    files: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return "skill"


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """``hint`` says what arguments it takes, as its author wrote it. ``digest`` is as for skills."""

    name: str
    description: str
    body: str
    file: Path
    origin: Origin
    hint: str = ""
    digest: str = ""

    @property
    def kind(self) -> Kind:
        return "template"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with something that was found. ``path`` is relative to where it was looked for; ``fatal`` means that it is left out."""

    path: str
    text: str
    origin: Origin
    fatal: bool
