r"""Regular expressions that cannot hang.

Python's own engine backtracks, exponentially for some patterns, and holds the interpreter meanwhile: one search could stop the whole host.
The JSON Schema validator brings a linear-time engine (ripgrep's: no look-around, no back-references), which is used here through its
``pattern`` keyword. That keyword speaks JavaScript's dialect, in which ``\w`` and ``\d`` are ASCII alone; the tool's description says so.
Linear still means pattern times text, and it holds the interpreter too: so patterns are limited in size, and whoever
tests long texts watches the time (``grep``).
"""

import re
from collections.abc import Callable

from features.contracts.errors import ModelMustAct

__all__ = ["LineTest", "glob_test", "regex_test"]

LineTest = Callable[[str], bool]

_MAX_COMPILED_BYTES = 1024 * 1024

_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\/-]")
_CLASS = re.compile(r"\[(!|\^)?(\]?[^\]/]*)\]")


def regex_test(pattern: str, *, ignore_case: bool = False) -> LineTest:
    """Whether a text holds a match. The text must not hold lone surrogates.

    Raises:
        ModelMustAct: the pattern is no regular expression of this kind, or far too big.
    """
    import jsonschema_rs

    schema = {"pattern": f"(?i){pattern}" if ignore_case else pattern}
    options = jsonschema_rs.RegexOptions(size_limit=_MAX_COMPILED_BYTES)
    try:
        return jsonschema_rs.validator_for(schema, pattern_options=options).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        raise ModelMustAct(
            f"{pattern!r} is no regular expression that grep understands. It takes ripgrep's kind, without look-around and "
            "back-references; set literal to search for the text as it stands"
        ) from None


def glob_test(glob: str) -> LineTest:
    """Whether a relative POSIX path fits a glob. Without a slash in the glob, its last part has to fit.

    ``*`` and ``?`` stay within a folder, ``**`` does not, ``[...]`` and ``{a,b}`` are known.
    """
    glob = glob.removeprefix("./")
    anchored = "/" in glob
    return regex_test(("^" if anchored else "(?:^|/)") + _translated(glob.removeprefix("/")) + "$")


def _translated(glob: str) -> str:
    parts: list[str] = []
    position, depth = 0, 0
    while position < len(glob):
        rest = glob[position:]
        if rest.startswith("**/"):
            parts.append("(?:.*/)?")
            position += 3
        elif rest.startswith("**"):
            parts.append(".*")
            position += 2
        elif group := _CLASS.match(rest):
            parts.append(f"[{'^' if group[1] else ''}{_class_members(group[2])}]")
            position += group.end()
        else:
            part, depth = _translated_character(rest[0], depth)
            parts.append(part)
            position += 1
    return "".join(parts) + ")" * depth


def _translated_character(character: str, depth: int) -> tuple[str, int]:
    match character:
        case "*":
            return "[^/]*", depth
        case "?":
            return "[^/]", depth
        case "{":
            return "(?:", depth + 1
        case "}" if depth:
            return ")", depth - 1
        case "," if depth:
            return "|", depth
        case _:
            return _SPECIAL.sub(r"\\\g<0>", character), depth


def _class_members(members: str) -> str:
    return re.sub(r"[\\\[\]^&~]", r"\\\g<0>", members)
