"""What a chat sets for itself."""

from difflib import get_close_matches
from zoneinfo import ZoneInfo

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code, in_rows
from bot.zones import is_zone, near_zones
from features.contracts.chat import Button
from features.contracts.errors import UserMustAct

__all__ = ["busy", "settings", "timezone", "verbose"]

_BUSY = {
    "steer": "I read it after the step I am at",
    "follow_up": "I read it when I have answered",
    "interrupt": "I stop and turn to it",
    "collect": "I read all of them together when I have answered",
}
_VERBOSE = {
    "off": "only my answers",
    "status": "one line that says what I am doing",
    "full": "every tool call",
}


async def timezone(context: CommandContext, arguments: str) -> None:
    services, place = context.services, context.conversation.place
    if not arguments:
        zone = (await services.settings.get(place)).time_zone
        here = services.clock.now().astimezone(ZoneInfo(zone))
        await context.say(f"This chat's zone is {code(zone)}; it is {here:%a %d %b, %H:%M}. To change it: `/timezone Europe/Vienna`")
        return
    if not is_zone(arguments):
        near = near_zones(arguments)
        if not near:
            raise UserMustAct(f"I know no zone {code(arguments)}. Give an IANA name, like `/timezone Europe/Vienna`.")
        buttons = [Button(label=zone, command=f"/timezone {zone}") for zone in near]
        await context.say(f"I know no zone {code(arguments)}. Did you mean {code(near[0])}?", *in_rows(buttons, across=1))
        return
    await services.settings.change(place, time_zone=arguments)
    await services.jobs.zone_changed(place, arguments)
    here = services.clock.now().astimezone(ZoneInfo(arguments))
    moved = " What is scheduled here follows it: `/jobs`." if await services.jobs.count(place) else ""
    await context.say(f"This chat's zone is {code(arguments)} now; it is {here:%a %d %b, %H:%M}.{moved}")


async def busy(context: CommandContext, arguments: str) -> None:
    now = (await context.services.settings.get(context.conversation.place)).busy
    await _choose(context, "busy", arguments, now, _BUSY, "When you write while I work")


async def verbose(context: CommandContext, arguments: str) -> None:
    now = (await context.services.settings.get(context.conversation.place)).verbose
    await _choose(context, "verbose", arguments, now, _VERBOSE, "While I work you see")


async def settings(context: CommandContext, _: str) -> None:
    now = await context.services.settings.get(context.conversation.place)
    buttons = [
        Button(label="Model", command="/model"),
        Button(label="Thinking", command="/thinking"),
        Button(label="Time zone", command="/timezone"),
        Button(label="When busy", command="/busy"),
        Button(label="What you see", command="/verbose"),
    ]
    lines = [
        f"- Model: {code(now.model)}",
        f"- Thinking: {code(now.thinking)}",
        f"- Time zone: {code(now.time_zone)}",
        f"- When you write while I work: {code(now.busy)}, {_BUSY[now.busy]}",
        f"- While I work you see: {code(now.verbose)}, {_VERBOSE[now.verbose]}",
    ]
    await context.say("\n".join(lines), *in_rows(buttons, across=2))


async def _choose(context: CommandContext, name: str, typed: str, now: str, meanings: dict[str, str], what: str) -> None:
    """Show the choices of a setting as buttons, or take one."""
    if not typed:
        lines = [f"- {code(choice)}: {meaning}" for choice, meaning in meanings.items()]
        buttons = [Button(label=f"✓ {choice}" if choice == now else choice, command=f"/{name} {choice}") for choice in meanings]
        await context.say(f"{what}:\n\n" + "\n".join(lines), *in_rows(buttons, across=2))
        return
    choice = typed.lower().replace("-", "_")
    if choice not in meanings:
        near = get_close_matches(choice, meanings, n=1)
        hint = f" Did you mean `/{name} {near[0]}`?" if near else ""
        raise UserMustAct(f"{code(typed)} is none of {', '.join(meanings)}.{hint}")
    await context.services.settings.change(context.conversation.place, **{name: choice})
    await context.say(f"{what}: {code(choice)}, {meanings[choice]}.")
