"""Replacing parts of a text and nothing else."""

import re
from collections.abc import Sequence

import msgspec

from features.contracts.errors import ModelMustAct
from features.tools.text_view import TextView, exact_view, fuzzy_view, normalised

__all__ = ["Replacement", "edited", "replacements"]

_ENDING = re.compile(r"\r\n|\r|\n")


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """``text[start:end]`` becomes ``new``."""

    start: int
    end: int
    new: str


def replacements(text: str, edits: Sequence[tuple[str, str]], name: str) -> list[Replacement]:
    """Find every old text in ``text``, each against the text as it is now, sorted by place.

    An exact match counts first (line ends are not compared), then one that differs in quotes, dashes, spaces, compatibility forms or white
    space before line ends. New texts get the line ends that are used where they go.

    Raises:
        ModelMustAct: an old text is empty, not there, there several times, or overlaps another; all such errors at once.
    """
    finder = _Finder(text, name)
    found: list[Replacement] = []
    errors: list[str] = []
    for number, (old, new) in enumerate(edits):
        prefix = f"edits[{number}]: " if len(edits) > 1 else ""
        try:
            start, end = finder.only_span(old)
        except ModelMustAct as error:
            errors.append(f"{prefix}{error}")
        else:
            found.append(Replacement(start=start, end=end, new=_with_ending(new, _ending_at(text, start, end))))
    found.sort(key=lambda replacement: (replacement.start, replacement.end))
    for before, after in zip(found, found[1:], strict=False):
        if after.start < before.end:
            errors.append(f"Two edits of {name} overlap. Make one edit of them.")
    if errors:
        raise ModelMustAct("\n".join(errors))
    return found


def edited(text: str, found: Sequence[Replacement]) -> str:
    """The text with sorted, disjoint replacements made."""
    parts: list[str] = []
    position = 0
    for replacement in found:
        parts += [text[position : replacement.start], replacement.new]
        position = replacement.end
    return "".join(parts) + text[position:]


class _Finder:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._exact = exact_view(text)
        self._fuzzy: TextView | None = None

    def only_span(self, old: str) -> tuple[int, int]:
        wanted = _with_ending(old, "\n")
        if not wanted:
            raise ModelMustAct(f"The old text for {self._name} is empty. Give the text to replace, or use write for a whole file.")
        spans = self._exact.occurrences(wanted)
        if not spans and normalised(wanted).strip():
            self._fuzzy = self._fuzzy or fuzzy_view(self._text)
            spans = self._fuzzy.occurrences(normalised(wanted))
        if not spans:
            raise ModelMustAct(
                f"Could not find the exact text in {self._name}. The old text must match exactly including all whitespace and newlines."
            )
        if len(spans) > 1:
            raise ModelMustAct(
                f"Found {len(spans)} occurrences of the text in {self._name}. The text must be unique. "
                "Please provide more context to make it unique."
            )
        return spans[0]


def _with_ending(text: str, ending: str) -> str:
    return _ENDING.sub(lambda _: ending, text)


def _ending_at(text: str, start: int, end: int) -> str:
    """The line end in use at a place: in it, else after it, else before it."""
    if (inside := _ENDING.search(text, start, end)) or (inside := _ENDING.search(text, end)):
        return inside.group()
    before = text.rfind("\n", 0, start)
    if before < 0:
        return "\r" if "\r" in text[:start] else "\n"
    return "\r\n" if text[before - 1 : before] == "\r" else "\n"
