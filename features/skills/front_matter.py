"""The YAML between two lines of dashes at the top of a Markdown file."""

import re
from typing import Any

__all__ = ["BrokenFrontMatter", "split_front_matter"]

_BLOCK = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)
_LONGEST = 64 * 1024


class BrokenFrontMatter(Exception):
    """It cannot be read; the text says why and where."""


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """What it says, and the body behind it; without a complete block, the whole text is the body.

    Raises:
        BrokenFrontMatter: it is no YAML, or not a list of keys with values.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    block = _BLOCK.match(text)
    if block is None:
        return {}, text
    return _read(block[1] or ""), text[block.end() :].strip()


def _read(source: str) -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]  # its types are a package of their own

    if len(source) > _LONGEST:
        raise BrokenFrontMatter(f"the front matter is longer than {_LONGEST // 1024} KB")
    try:
        found = yaml.load(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 2}, column {mark.column + 1}" if mark is not None else ""  # the dashes are line 1
        raise BrokenFrontMatter(f"the front matter is no valid YAML{where}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BrokenFrontMatter(f"the front matter is no valid YAML: {str(error).partition(chr(10))[0]}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BrokenFrontMatter("the front matter is no list of keys with values, like `name: my-skill`")
    return {str(key): value for key, value in found.items()}
