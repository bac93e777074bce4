"""Beginning, finding, naming and deleting sessions."""

from zoneinfo import ZoneInfo

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code, in_rows, one_line, plain
from features.contracts.chat import Button
from features.contracts.errors import UserMustAct
from features.contracts.sessions import SessionSummary

__all__ = ["compact", "delete", "name", "new", "resume", "sessions"]

_MOST_LISTED = 20
_MOST_BUTTONS = 8
_LONGEST_NAME = 100


async def new(context: CommandContext, arguments: str) -> None:
    await context.conversation.moves.start_new(one_line(arguments, limit=_LONGEST_NAME))
    named = f", {plain(arguments)}" if arguments else ""
    await context.say(f"A fresh session{named}. The one before is in `/sessions`.")


async def sessions(context: CommandContext, _: str) -> None:
    found = await context.conversation.moves.list()
    if not found:
        await context.say("There are no sessions yet. Just write something.")
        return
    zone = ZoneInfo((await context.services.settings.get(context.conversation.place)).time_zone)
    present = context.conversation.status().session_id
    lines = [_line(session, zone, present) for session in found[:_MOST_LISTED]]
    if len(found) > _MOST_LISTED:
        lines.append(f"- ...and {len(found) - _MOST_LISTED} older ones")
    others = [session for session in found if session.id != present][:_MOST_BUTTONS]
    buttons = [Button(label=one_line(_title(session), limit=30), command=f"/resume {session.id}") for session in others]
    hint = "\n\nTo go back to one: `/resume ID`. To delete one: `/delete ID`."
    await context.say("\n".join(lines) + hint, *in_rows(buttons, across=2))


async def resume(context: CommandContext, arguments: str) -> None:
    if not arguments:
        raise UserMustAct("Which one? `/sessions` lists them; then `/resume ID`.")
    title = await context.conversation.moves.resume(arguments.split()[0])
    await context.say(f"Back in {plain(title)}." if title else f"Back in {code(arguments.split()[0])}.")


async def delete(context: CommandContext, arguments: str) -> None:
    """``/delete ID`` asks; its buttons say ``/delete ID yes``, in a group with whoever asked, and ``/delete ID no``."""
    words = arguments.split()
    if not words:
        raise UserMustAct("Which one? `/sessions` lists them; then `/delete ID`.")
    session = _the_one(words[0], list(await context.conversation.moves.list()))
    if words[1:2] == ["yes"]:
        if len(words) > 2 and words[2] != context.sender.id and not context.owner:
            raise UserMustAct("Only whoever asked, or an owner, may press this.")
        await context.conversation.moves.delete(session.id)
        await context.say(f"{plain(_title(session))} is deleted.")
        return
    if words[1:2] == ["no"]:
        await context.say(f"{plain(_title(session))} stays.")
        return
    asker = f" {context.sender.id}" if context.group else ""
    buttons = [Button(label="Delete", command=f"/delete {session.id} yes{asker}"), Button(label="Keep", command=f"/delete {session.id} no")]
    count = f"{session.message_count} message{'' if session.message_count == 1 else 's'}"
    await context.say(f"Delete {plain(_title(session))} ({count}) for good?", buttons)


async def name(context: CommandContext, arguments: str) -> None:
    if not arguments:
        raise UserMustAct("What should it be called? `/name Trip to Rome`")
    if context.conversation.status().session_id is None and not await context.conversation.moves.list():
        raise UserMustAct("There is no session yet. Write something first, or use `/new NAME`.")
    title = one_line(arguments, limit=_LONGEST_NAME)
    await context.conversation.moves.rename(title)
    await context.say(f"This session is called {plain(title, limit=_LONGEST_NAME)} now.")


async def compact(context: CommandContext, arguments: str) -> None:
    """``arguments`` are what the summary is to look at above all."""
    await context.say(await context.conversation.compact(arguments.strip()))


def _the_one(typed: str, found: list[SessionSummary]) -> SessionSummary:
    matching = [session for session in found if session.id == typed] or [session for session in found if session.id.startswith(typed)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UserMustAct(f"{code(typed)} could be {len(matching)} sessions. Give more of its ID.")
    raise UserMustAct(f"There is no session {code(typed)} here. `/sessions` lists them.")


def _line(session: SessionSummary, zone: ZoneInfo, present: str | None) -> str:
    when = session.modified_at.astimezone(zone)
    here = " (this one)" if session.id == present else ""
    return f"- {plain(_title(session))}{here}, {session.message_count} messages, {when:%d %b %H:%M}\n  {code(session.id)}"


def _title(session: SessionSummary) -> str:
    return session.name or session.first_message or "an empty session"
