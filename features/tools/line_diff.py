"""What an edit changed, for people."""

from bisect import bisect_right
from collections.abc import Sequence

from features.tools.text_edit import Replacement

__all__ = ["line_diff"]

_CONTEXT = 4
_MAX_LINES = 400


def line_diff(text: str, found: Sequence[Replacement]) -> tuple[str, int]:
    """The changed lines with four around them, numbered, and the number of the first changed line (from 1).

    Lines that go are marked ``-`` and have their old number, lines that come ``+`` and their new one; long diffs are cut.
    """
    old = text.split("\n")
    starts = _line_starts(old)
    width = len(str(len(old) + sum(replacement.new.count("\n") for replacement in found)))
    shown: list[str] = []
    first_changed = 0
    done, shift = 0, 0
    for first, last, new in _changed_lines(text, starts, found):
        first_changed = first_changed or first + 1
        shown += _between(old, done, first, shift, width, after_change=bool(done))
        shown += [f"-{number + 1:>{width}} {_line(old[number])}" for number in range(first, last + 1)]
        shown += [f"+{first + shift + offset + 1:>{width}} {_line(line)}" for offset, line in enumerate(new)]
        shift += len(new) - (last - first + 1)
        done = last + 1
    shown += [f" {number + 1 + shift:>{width}} {_line(old[number])}" for number in range(done, min(len(old), done + _CONTEXT))]
    if done + _CONTEXT < len(old):
        shown.append(f" {'':>{width}} ...")
    if len(shown) > _MAX_LINES:
        shown = [*shown[:_MAX_LINES], f" {'':>{width}} ... ({len(shown) - _MAX_LINES} more lines)"]
    return "\n".join(shown), first_changed


def _changed_lines(text: str, starts: list[int], found: Sequence[Replacement]) -> list[tuple[int, int, list[str]]]:
    """First and last line of each change with its new lines; changes that share a line are one."""
    groups: list[tuple[int, int, list[Replacement]]] = []
    for replacement in found:
        first = _line_of(starts, replacement.start)
        last = max(first, _line_of(starts, replacement.end))
        if groups and first <= groups[-1][1]:
            groups[-1] = (groups[-1][0], max(last, groups[-1][1]), [*groups[-1][2], replacement])
        else:
            groups.append((first, last, [replacement]))
    changes: list[tuple[int, int, list[str]]] = []
    for first, last, members in groups:
        begin = starts[first]
        end = starts[last + 1] - 1 if last + 1 < len(starts) else len(text)
        parts: list[str] = []
        for member in members:
            parts += [text[begin : member.start], member.new]
            begin = member.end
        changes.append(_trimmed(text[starts[first] : end].split("\n"), ("".join(parts) + text[begin:end]).split("\n"), first))
    return changes


def _trimmed(old: list[str], new: list[str], first: int) -> tuple[int, int, list[str]]:
    """Without the lines at either end that did not change."""
    before = 0
    while before < min(len(old), len(new)) and old[before] == new[before]:
        before += 1
    after = 0
    while after < min(len(old), len(new)) - before and old[-1 - after] == new[-1 - after]:
        after += 1
    return first + before, first + len(old) - after - 1, new[before : len(new) - after]


def _between(old: list[str], done: int, first: int, shift: int, width: int, *, after_change: bool) -> list[str]:
    """The unchanged lines from ``done`` to ``first``: the nearest ones, dots for the rest."""
    numbers = range(done, first)
    head = numbers[:_CONTEXT] if after_change else numbers[:0]
    tail = numbers[max(len(head), len(numbers) - _CONTEXT) :]
    lines = [f" {number + 1 + shift:>{width}} {_line(old[number])}" for number in head]
    if len(head) + len(tail) < len(numbers):
        lines.append(f" {'':>{width}} ...")
    return lines + [f" {number + 1 + shift:>{width}} {_line(old[number])}" for number in tail]


def _line_starts(lines: list[str]) -> list[int]:
    starts = [0]
    for line in lines[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _line_of(starts: list[int], offset: int) -> int:


    return bisect_right(starts, offset) - 1


def _line(line: str) -> str:
    return line.removesuffix("\r")
