"""What may run in a chat without being asked about."""

from collections.abc import Sequence

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code, in_rows, one_line
from features.approvals import Grant
from features.contracts.chat import Button
from features.contracts.errors import UserMustAct

__all__ = ["approvals"]

_MOST_BUTTONS = 20
_POLICIES = {"ask": "I ask before I use", "deny": "Never used here:"}


async def approvals(context: CommandContext, arguments: str) -> None:
    action, _, what = arguments.partition(" ")
    if not action:
        await _show(context)
        return
    if action not in ("remove", "clear"):
        raise UserMustAct(f"{code(action)} is neither `remove ID` nor `clear`.")
    if not context.owner:
        raise UserMustAct("Only an owner may change what is allowed here.")
    await _show(context, await _removed(context, what.split() if action == "remove" else None))


async def _removed(context: CommandContext, ids: Sequence[str] | None) -> str:
    """
    Args:
        ids: what to take back; None for everything.
    """
    desk, place = context.services.approvals, context.conversation.place
    if ids is None:
        ids = [grant.id for grant in await desk.granted(place)]
    elif not ids:
        raise UserMustAct("Which one? `/approvals` lists them with their ids.")
    count = await desk.remove(place, ids)
    return "That was not allowed any more." if not count else "Taken back; I ask again from now on."


async def _show(context: CommandContext, first: str = "") -> None:
    services, place = context.services, context.conversation.place
    options, granted = services.approvals.options, await services.approvals.granted(place)
    lines = [first] if first else []
    for policy, said in _POLICIES.items():
        if tools := [tool for tool, one in options.tools.items() if one == policy]:
            lines.append(f"{said} {', '.join(map(code, tools))}.")
    if not options.asks:
        lines.append("I use every tool without asking: this host's configuration has nothing else in `[approvals]`.")
    if options.allow_commands:
        lines.append(f"On this host these never ask: {', '.join(map(code, options.allow_commands))}.")
    if granted:
        lines.append("In this chat these never ask:\n" + "\n".join(f"- {_named(grant)} (`{grant.id}`)" for grant in granted))
    elif options.asks:
        lines.append("Nothing else was allowed for good in this chat.")
    buttons = [_remove(grant) for grant in granted[:_MOST_BUTTONS]] if context.owner else []
    await context.say("\n\n".join(lines), *in_rows(buttons, across=1))


def _remove(grant: Grant) -> Button:
    return Button(label=f"Remove: {one_line(grant.command or grant.tool, limit=40)}", command=f"/approvals remove {grant.id}")


def _named(grant: Grant) -> str:
    return f"every call of {code(grant.tool)}" if grant.command is None else code(grant.command)
