"""Which model answers, and how hard it thinks."""

from collections.abc import Sequence
from difflib import get_close_matches

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code, in_rows, one_line
from features.contracts.chat import Button
from features.contracts.errors import UserMustAct
from features.contracts.models import THINKING_LEVELS, Model

__all__ = ["model", "thinking"]

_MOST_BUTTONS = 12
_MOST_LINES = 40


async def model(context: CommandContext, arguments: str) -> None:
    services, conversation = context.services, context.conversation
    if not arguments:
        await _show_choices(context, services.models.models())
        return
    of_provider = [known for known in services.models.models() if known.provider == arguments]
    if of_provider:
        await _show_models(context, f"Models of {code(arguments)}:", of_provider)
        return
    chosen = services.models.resolve(arguments)
    await services.settings.change(conversation.place, model=chosen.reference)
    await conversation.set_model(chosen.reference)
    await context.say(f"From now on {code(chosen.reference)} answers here.")


async def thinking(context: CommandContext, arguments: str) -> None:
    services, conversation = context.services, context.conversation
    settings = await services.settings.get(conversation.place)
    if not arguments:
        buttons = [Button(label=_marked(level, level == settings.thinking), command=f"/thinking {level}") for level in THINKING_LEVELS]
        await context.say(f"Thinking is {code(settings.thinking)}. More of it is slower and dearer.", *in_rows(buttons, across=3))
        return
    level = next((level for level in THINKING_LEVELS if level == arguments.lower()), None)
    if level is None:
        near = get_close_matches(arguments.lower(), THINKING_LEVELS, n=1)
        hint = f" Did you mean `/thinking {near[0]}`?" if near else ""
        raise UserMustAct(f"{code(arguments)} is no level. There are: {', '.join(THINKING_LEVELS)}.{hint}")
    await services.settings.change(conversation.place, thinking=level)
    await conversation.set_thinking(level)
    await context.say(f"Thinking is {code(level)} now.")


async def _show_choices(context: CommandContext, models: Sequence[Model]) -> None:
    now = context.conversation.status().model or (await context.services.settings.get(context.conversation.place)).model
    said = f"{code(now)} answers here. To switch, press one or type `/model provider/model`."
    providers = list(dict.fromkeys(known.provider for known in models))
    if len(models) <= _MOST_BUTTONS:
        buttons = [_button(known, now) for known in models]
        await context.say(said, *in_rows(buttons, across=1))
        return
    buttons = [Button(label=one_line(provider, limit=30), command=f"/model {provider}") for provider in providers[:_MOST_BUTTONS]]
    await context.say(f"{said} There are {len(models)} models, by provider:", *in_rows(buttons, across=2))


async def _show_models(context: CommandContext, heading: str, models: Sequence[Model]) -> None:
    now = context.conversation.status().model
    if len(models) <= _MOST_BUTTONS:
        await context.say(heading, *in_rows([_button(known, now) for known in models], across=1))
        return
    lines = [f"- {code(known.reference)}" for known in models[:_MOST_LINES]]
    left = len(models) - len(lines)
    more = f"\n\n...and {left} more. Any model of this provider can be named." if left > 0 else ""
    await context.say(f"{heading}\n\n" + "\n".join(lines) + more)


def _button(known: Model, now: str) -> Button:
    return Button(
        label=_marked(one_line(known.name or known.reference, limit=40), known.reference == now), command=f"/model {known.reference}"
    )


def _marked(label: str, chosen: bool) -> str:
    return f"✓ {label}" if chosen else label
