"""The list of the commands."""

from collections.abc import Awaitable, Callable

from bot.chat_commands.access_commands import pair
from bot.chat_commands.approval_commands import approvals
from bot.chat_commands.basics import answer, help_, start, status, stop
from bot.chat_commands.context import CommandContext
from bot.chat_commands.extension_commands import extensions, reload
from bot.chat_commands.job_commands import job, jobs, schedule
from bot.chat_commands.memory_commands import memory
from bot.chat_commands.model_commands import model, thinking
from bot.chat_commands.session_commands import compact, delete, name, new, resume, sessions
from bot.chat_commands.setting_commands import busy, settings, timezone, verbose
from bot.chat_commands.skill_commands import skills
from bot.chat_commands.tree_commands import export, fork, label, retry, tree, undo
from bot.chat_commands.usage_command import usage
from features.commands import Command

__all__ = ["chat_commands"]

_Run = Callable[[CommandContext, str], Awaitable[None]]


def chat_commands() -> list[Command[CommandContext]]:
    """Every command of this version, in the order in which help shows them."""
    return [
        _command("start", "", "Says hello and what I can do.", start, control=True),
        _command("help", "[command]", "Lists the commands, or explains one.", help_, control=True),
        _command("new", "[name]", "Starts a fresh session; the old one stays in /sessions.", new),
        _command("stop", "", "Stops what I am doing at once.", stop, control=True),
        _command("status", "", "Shows model, context, cost, queue and channels.", status, control=True),
        _command("model", "[provider/model]", "Shows or switches the model.", model),
        _command("thinking", "[level]", "Shows or sets how much the model thinks first.", thinking),
        _command("compact", "[instructions]", "Sums up what was said before, to make room; say what matters most.", compact),
        _command("tree", "[ENTRY [summary]]", "Shows where this session branched, and goes there.", tree),
        _command("fork", "[ENTRY]", "Goes on in a session of its own, from here or from an entry.", fork),
        _command("label", "NAME", "Names this place, to come back to it.", label),
        _command("undo", "", "Takes back what you said last.", undo),
        _command("retry", "", "Answers what you said last once more.", retry),
        _command("sessions", "", "Lists this chat's sessions.", sessions),
        _command("resume", "ID", "Goes back to an earlier session.", resume),
        _command("delete", "ID", "Deletes a session for good, after asking.", delete),
        _command("name", "TEXT", "Names the present session.", name),
        _command("export", "[html|jsonl|md]", "Sends this session as a file.", export),
        _command("timezone", "[ZONE]", "Shows or sets this chat's time zone.", timezone),
        _command("busy", "[steer|follow_up|interrupt|collect]", "What becomes of a message while I work.", busy),
        _command("verbose", "[off|status|full]", "How much of my work you see.", verbose),
        _command("schedule", "[WHEN PROMPT]", "Makes me do something at a time, once or again.", schedule),
        _command("jobs", "", "Lists what is scheduled in this chat.", jobs),
        _command("job", "ID [run|pause|resume|remove]", "Shows or changes something that is scheduled.", job),
        _command("memory", "[forget KEY|clear] [everywhere]", "What I remember here, with buttons to forget it.", memory),
        _command("skills", "[show|allow|refuse NAME]", "Skills and prompt templates of this chat.", skills),
        _command("usage", "[day|week|month]", "Tokens and money that this chat used.", usage),
        _command("settings", "", "This chat's settings, as buttons.", settings),
        _command("extensions", "[reload|trust|disable|enable]", "What extends me here, and whether it runs.", extensions),
        _command("reload", "", "Loads the extensions again.", reload, owner_only=True),
        _command("approvals", "[remove ID|clear]", "What may run here without being asked about.", approvals),
        _command("answer", "QUESTION CHOICE", "Answers a question that I asked.", answer, control=True, hidden=True, late=True),
        _command("pair", "[CODE]", "Admits the person with this code, or this group.", pair, control=True, owner_only=True),
    ]


def _command(
    name: str,
    usage: str,
    description: str,
    run: _Run,
    *,
    control: bool = False,
    owner_only: bool = False,
    hidden: bool = False,
    late: bool = False,
) -> Command[CommandContext]:
    return Command(name, usage, description, run, control=control, owner_only=owner_only, hidden=hidden, late=late)
