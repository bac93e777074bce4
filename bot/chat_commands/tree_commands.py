"""Walking and branching the tree of the present session, and taking it along as a file."""

from collections.abc import Sequence
from typing import cast, get_args

from bot.chat_commands.context import CommandContext, Place
from bot.chat_commands.markdown import code, in_rows, one_line, plain
from bot.chat_commands.tree_view import TreeRow, tree_rows, tree_text
from features.contracts.chat import Button
from features.contracts.errors import UserMustAct
from features.contracts.session_transfer import ExportFormat

__all__ = ["export", "fork", "label", "retry", "tree", "undo"]

_MOST_ROWS = 40
_MOST_BUTTONS = 8
_LONGEST_LABEL = 60
_LONGEST_QUOTE = 300
_SUMMARY = "summary"
_NO_LABEL = "-"


async def tree(context: CommandContext, arguments: str) -> None:
    """``/tree`` shows it, ``/tree ENTRY`` goes there, ``/tree ENTRY summary`` takes notes on what is left along."""
    if not arguments:
        await _show(context)
        return
    words = arguments.split(maxsplit=2)
    summarise = words[1:2] == [_SUMMARY]
    written = words[0] if summarise else arguments
    instructions = words[2] if summarise and len(words) > 2 else ""
    place = await context.conversation.moves.go_to(written, summarise=summarise, instructions=instructions)
    await _arrived(context, place, "Here we go on")


async def undo(context: CommandContext, _: str) -> None:
    place = await context.conversation.moves.undo()
    await _arrived(context, place, "Taken back. We go on")


async def retry(context: CommandContext, _: str) -> None:
    await context.conversation.moves.retry(owner=context.owner)


async def fork(context: CommandContext, arguments: str) -> None:
    place = await context.conversation.moves.fork(arguments.strip())
    await _arrived(context, place, "This is a session of its own now, the one before is in `/sessions`. We go on")


async def label(context: CommandContext, arguments: str) -> None:
    name = one_line(arguments, limit=_LONGEST_LABEL)
    if not name:
        raise UserMustAct("What should this place be called? `/label before the flights`. `/label -` takes the name away.")
    text = await context.conversation.moves.label("" if name == _NO_LABEL else name)
    if name == _NO_LABEL:
        await context.say("This place has no name any more.")
    else:
        await context.say(f"{_quoted(text)}\nThis place is called **{plain(name)}** now. `/tree {plain(name)}` comes back to it.".lstrip())


async def export(context: CommandContext, arguments: str) -> None:
    form = arguments.strip().lower() or "html"
    if form not in get_args(ExportFormat):
        raise UserMustAct(f"{code(arguments)} is none of html, md, jsonl.")
    file = await context.conversation.moves.export(cast("ExportFormat", form))
    await context.conversation.say(f"This session as a file: {code(file.name)}", files=(file,))


async def _show(context: CommandContext) -> None:
    shown = await context.conversation.moves.tree()
    rows = tree_rows(shown.roots, shown.branch)
    if not rows:
        raise UserMustAct("There is nothing here yet. Just write something.")
    cut = f"...and {len(rows) - _MOST_ROWS} earlier places\n" if len(rows) > _MOST_ROWS else ""
    text = f"```\n{cut}{tree_text(rows[-_MOST_ROWS:])}\n```\n"
    text += "A button goes there; so does `/tree ID`, and `/tree ID summary` takes notes on what is left along."
    await context.say(text, *in_rows([_button(row) for row in _targets(rows)], across=2))


def _targets(rows: Sequence[TreeRow]) -> list[TreeRow]:
    """Where one would want to go: named places, the ends of other branches, then what was said last."""
    others = [row for row in rows if row.entry_id and not row.here]
    ranked = [row for row in others if row.label] + [row for row in others if row.tip and not row.on_branch]
    ranked += [row for row in reversed(others) if row.on_branch]
    return list(dict.fromkeys(ranked))[:_MOST_BUTTONS]


def _button(row: TreeRow) -> Button:
    return Button(label=one_line(row.label or row.text, limit=30), command=f"/tree {row.entry_id}")


async def _arrived(context: CommandContext, place: Place, lead: str) -> None:
    where = f"after:\n{_quoted(place.at).rstrip()}" if place.at else "from the beginning."
    said = f"\n\nThere you had said:\n{_quoted(place.said)}\nSay it again, or something else." if place.said else ""
    buttons = [Button(label="Back to where we were", command=f"/tree {place.left}")] if place.left is not None else []
    await context.say(f"{lead} {where}{said}".rstrip(), *([buttons] if buttons else []))


def _quoted(text: str) -> str:
    return f"> {plain(text, limit=_LONGEST_QUOTE)}\n" if text else ""
