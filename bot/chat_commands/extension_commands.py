"""What extends this host, and what owners decide about it."""

from collections.abc import Sequence
from difflib import get_close_matches

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code
from bot.extension_texts import extension_list
from features.contracts.errors import UserMustAct
from features.extensions import LoadedExtension

__all__ = ["extensions", "reload"]

_ACTIONS = ("reload", "trust", "disable", "enable")


async def reload(context: CommandContext, _: str) -> None:
    await extensions(context, "reload")


async def extensions(context: CommandContext, arguments: str) -> None:
    action, _, rest = arguments.partition(" ")
    if not action:
        await _show(context)
        return
    if action not in _ACTIONS:
        near = get_close_matches(action, _ACTIONS, n=1)
        hint = f" Did you mean `/extensions {near[0]}`?" if near else ""
        raise UserMustAct(f"{code(action)} is none of {', '.join(_ACTIONS)}.{hint}")
    if not context.owner:
        raise UserMustAct("Only an owner may do that.")
    await _show(context, await _carried_out(context, action, rest.strip()))


async def _carried_out(context: CommandContext, action: str, what: str) -> str:
    """Do what an owner asked for; a sentence about it."""
    desk, place, by = context.services.extensions, context.conversation.place, context.sender.id
    if action == "reload":
        loaded = await desk.reload()
        failed = len(loaded.problems)
        return "Loaded again." if not failed else f"Loaded again; {failed} of {len(loaded.all)} failed."
    if not what:
        raise UserMustAct(f"Which one? `/extensions` lists them; then `/extensions {action} {'CONTENT' if action == 'trust' else 'NAME'}`.")
    if action == "trust":
        return f"{code(await desk.trust(place, what, by=by))} is trusted as it is now; if it changes, I ask again."
    known = _named(await context.conversation.extensions(), what)
    if action == "enable":
        if known.state == "disabled" and not known.reason:
            raise UserMustAct(f"{code(known.name)} is disabled by the configuration of this host: take it out of extensions.disabled.")
        await desk.enable(place, known.name)
        return f"{code(known.name)} is enabled in this chat."
    await desk.disable(place, known.name, by=by)
    return f"{code(known.name)} is disabled in this chat."


def _named(extensions: Sequence[LoadedExtension], typed: str) -> LoadedExtension:
    names = {extension.name: extension for extension in extensions}
    if typed in names:
        return names[typed]
    near = get_close_matches(typed, names, n=1)
    raise UserMustAct(
        f"There is no extension {code(typed)} here. " + (f"Did you mean {code(near[0])}?" if near else "`/extensions` lists them.")
    )


async def _show(context: CommandContext, done: str = "") -> None:
    running = context.conversation.status().running
    text, rows = extension_list(await context.conversation.extensions(), owner=context.owner)
    later = "It counts here once I have finished what I am doing." if done and running else ""
    await context.say("\n\n".join(part for part in (" ".join(p for p in (done, later) if p), text) if part), *rows)
