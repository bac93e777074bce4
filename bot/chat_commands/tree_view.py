"""A session's tree as lines that people can read."""

from collections.abc import Sequence
from typing import NamedTuple

from bot.chat_commands.markdown import one_line
from features.contracts.messages import AssistantMessage, UserMessage, message_text
from features.contracts.sessions import BranchSummaryEntry, CompactionEntry, MessageEntry, SessionEntry, TreeNode

__all__ = ["TreeRow", "tree_rows", "tree_text"]

_TEXT_CHARS = 44
_DEEPEST = 8
_SHORT_ID = 8


class TreeRow(NamedTuple):
    """One place. ``here`` says that the conversation goes on there, ``tip`` that nothing follows it."""

    entry_id: str
    prefix: str
    text: str
    label: str
    here: bool
    tip: bool
    on_branch: bool


class _Place:
    """A place that is shown, and the places that follow it."""

    def __init__(self, node: TreeNode | None) -> None:
        self.node = node
        self.children: list[_Place] = []


def tree_rows(roots: Sequence[TreeNode], branch: Sequence[str]) -> list[TreeRow]:
    """What people said, what has a name, summaries, and where branches end. Only forks are indented; the present branch comes last.

    Args:
        branch: the ids of the present branch, root first.
    """
    on_branch = frozenset(branch)
    here = branch[-1] if branch else None
    top = _condensed(roots, here)
    if here is None and top.children:
        top.children.append(_Place(None))  # the beginning: what is said next is a root
    rows: list[TreeRow] = []
    stack: list[tuple[_Place, str, str]] = []

    def follow(place: _Place, indent: str) -> None:
        ranked = sorted(place.children, key=lambda child: child.node is None or child.node.entry.id in on_branch)
        forked = len(ranked) > 1
        deep = len(indent) >= 3 * _DEEPEST
        for number, child in reversed(list(enumerate(ranked))):
            if not forked or deep:
                stack.append((child, indent, indent))
            else:
                last = number == len(ranked) - 1
                stack.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))

    follow(top, "")
    while stack:
        place, prefix, indent = stack.pop()
        rows.append(_row(place, prefix, here, on_branch))
        follow(place, indent)
    return rows


def tree_text(rows: Sequence[TreeRow]) -> str:
    """Lines of fixed width, for a code block."""
    lines = []
    for row in rows:
        label = f" [{row.label}]" if row.label else ""
        mark = "  ◀ here" if row.here else ""
        place = f"{row.entry_id[:_SHORT_ID]}  " if row.entry_id else ""
        lines.append(f"{place}{row.prefix}{row.text}{label}{mark}")
    return "\n".join(lines).replace("`", "'")


def _condensed(roots: Sequence[TreeNode], here: str | None) -> _Place:
    top = _Place(None)
    stack = [(node, top) for node in reversed(roots)]
    while stack:
        node, above = stack.pop()
        if _is_shown(node, here):
            place = _Place(node)
            above.children.append(place)
            above = place
        stack.extend((child, above) for child in reversed(node.children))
    return top


def _is_shown(node: TreeNode, here: str | None) -> bool:
    entry = node.entry
    if node.label or not node.children or entry.id == here or isinstance(entry, CompactionEntry | BranchSummaryEntry):
        return True
    return isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)


def _row(place: _Place, prefix: str, here: str | None, on_branch: frozenset[str]) -> TreeRow:
    node = place.node
    if node is None:
        return TreeRow("", prefix, "(the beginning)", "", here=True, tip=True, on_branch=True)
    entry = node.entry
    text = one_line(_text(entry), limit=_TEXT_CHARS)
    return TreeRow(entry.id, prefix, text, node.label or "", here=entry.id == here, tip=not place.children, on_branch=entry.id in on_branch)


def _text(entry: SessionEntry) -> str:
    match entry:
        case MessageEntry(message=AssistantMessage() as message):
            return f"→ {message_text(message).strip() or '(at work)'}"
        case MessageEntry():
            return message_text(entry.message).strip() or "(a picture)"
        case CompactionEntry():
            return "(summed up)"
        case BranchSummaryEntry():
            return "(notes on another branch)"
        case _:
            return "(a setting)"
