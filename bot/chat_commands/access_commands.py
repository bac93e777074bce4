"""Who may talk, changed by owners in the chat."""

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code, plain

__all__ = ["pair"]

_MOST_LISTED = 30


async def pair(context: CommandContext, arguments: str) -> None:
    access = context.services.access
    if arguments:
        await context.say(await access.approve(arguments, context.sender.id))
        return
    if context.group:
        await context.say(await access.admit_group(context.conversation.place, context.sender.id))
        return
    members = [member for member in await access.members() if member.in_force]
    lines = [
        f"- {code(member.id)} {plain(member.name)}".rstrip() + (" (owner)" if member.owner else "") for member in members[:_MOST_LISTED]
    ]
    if len(members) > _MOST_LISTED:
        lines.append(f"- ...and {len(members) - _MOST_LISTED} more")
    waiting = [f"- {code(code_.person)} {plain(code_.name)}".rstrip() for code_ in access.pending()[:_MOST_LISTED]]
    parts = ["To admit somebody, send `/pair CODE` with the code that I gave them; to admit a group, send `/pair` in it."]
    parts += ["**Admitted:**\n" + "\n".join(lines)] if lines else []
    parts += ["**Holding a code:**\n" + "\n".join(waiting)] if waiting else []
    await context.say("\n\n".join(parts))
