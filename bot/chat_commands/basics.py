"""The commands that act at once: hello, help, stop, status."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from bot.chat_commands.context import CommandContext, Status
from bot.chat_commands.markdown import code, plain
from features.contracts.chat import Button, ChatCommand
from features.contracts.errors import PumiceError, UserMustAct

__all__ = ["answer", "help_", "start", "status", "stop"]


async def start(context: CommandContext, _: str) -> None:
    settings = await context.services.settings.get(context.conversation.place)
    lines = [
        "Hello! I am an agent that lives in this chat. Write what you need; I can run commands, work with files and send them to you.",
        f"I use {code(settings.model)}" + (" and only pretend to think: see `/model`." if settings.model.startswith("offline/") else "."),
        "`/help` lists what can be said, `/new` starts afresh, `/stop` stops me.",
    ]
    await context.say("\n\n".join(lines))


async def answer(context: CommandContext, arguments: str) -> None:
    """What the buttons under a question say; the question's message tells the rest."""
    words = arguments.split()
    if len(words) != 2:
        raise UserMustAct("Press a button under the question, or just type your answer.")
    await context.conversation.answer_question(words[0], words[1], context.sender, owner=context.owner, group=context.group)


async def help_(context: CommandContext, arguments: str) -> None:
    registry = context.services.registry
    brought = await _brought(context)
    if arguments:
        name = arguments.split()[0].lstrip("/").lower()
        known = next((command for command in brought if command.name == name), None)
        await context.say(registry.help_text(context.owner, name) if known is None else f"`/{known.name}`\n{known.description}")
        return
    lines = [registry.help_text(context.owner), *(f"- `/{command.name}` {command.description}" for command in brought)]
    await context.say("Just write to me. These commands work too:\n\n" + "\n".join(lines))


async def _brought(context: CommandContext) -> Sequence[ChatCommand]:
    """The commands of extensions; help is there also for whoever has to mend a chat that cannot be opened."""
    try:
        return await context.conversation.extension_commands()
    except PumiceError:
        return ()


async def stop(context: CommandContext, _: str) -> None:
    stopped = await context.conversation.stop()
    said = "Stopped." if stopped.was_running else "Nothing was running."
    if stopped.kept:
        many = stopped.kept != 1
        said += f" {stopped.kept} queued message{'s are' if many else ' is'} kept; I go on with {'them' if many else 'it'} next."
    await context.say(said)


async def status(context: CommandContext, _: str) -> None:
    services, conversation = context.services, context.conversation
    settings = await services.settings.get(conversation.place)
    now = conversation.status()
    today = services.clock.now().astimezone(ZoneInfo(settings.time_zone))
    spent = await services.usage.spent(str(conversation.place), today.date())
    lines = [
        f"**Doing:** {_doing(now)}",
        f"**Model:** {code(now.model or settings.model)}, thinking {settings.thinking}",
        f"**Context:** {_context(now)}",
        f"**Session:** {_session(now)}",
        f"**Today:** ${spent:.2f}",
        f"**Jobs:** {await services.jobs.count(conversation.place) or 'none'}",
        f"**Zone:** {settings.time_zone}, it is {today:%a %H:%M}",
        *_channels(context),
    ]
    buttons = [Button(label="Stop", command="/stop")] if now.running else []
    await context.say("\n".join(f"- {line}" for line in lines), *([buttons] if buttons else []))


def _doing(now: Status) -> str:
    if not now.running:
        doing = "nothing, I wait for you"
    elif now.running_tools:
        doing = "running " + ", ".join(code(tool) for tool in now.running_tools)
    else:
        doing = "answering"
    return doing + (f"; {now.queued} in the queue" if now.queued else "")


def _context(now: Status) -> str:
    if now.session_id is None:
        return "empty"
    if not now.context_window:
        return f"{now.context_tokens:,} tokens"
    return f"{now.context_tokens:,} of {now.context_window:,} tokens ({100 * now.context_tokens // now.context_window} %)"


def _session(now: Status) -> str:
    if now.session_id is None:
        return "none yet"
    return (f"{plain(now.session_name)}, " if now.session_name else "") + code(now.session_id)


def _channels(context: CommandContext) -> list[str]:
    """The truth about channels, also when it is bad."""
    lines = []
    for name, health in sorted(context.services.channels_health().items()):
        detail = f": {plain(health.detail, limit=200)}" if health.detail else ""
        lines.append(f"**{name}:** {health.state}{detail}")
    return lines
