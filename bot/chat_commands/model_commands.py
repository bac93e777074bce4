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


async def model(context: CommandContext, arguments: str) -> None:
    services, conversation = context.services, context.conversation
    if not arguments:
        await _show_choices(context, [*services.models.models(), *await conversation.extension_models()])
        return
    name, _, start = arguments.partition(" ")
    brought = await conversation.extension_models() if name.partition("/")[0] not in _providers(context) else ()
    of_provider = [known for known in (*services.models.models(), *brought) if known.provider == name]
    if of_provider and (not start or start.isdecimal()):
        await _show_models(context, name, of_provider, int(start or 1))
        return
    chosen = next((known for known in brought if known.reference == name), None) or services.models.resolve(arguments)
    await services.settings.change(conversation.place, model=chosen.reference)
    await conversation.set_model(chosen.reference)
    await context.say(f"From now on {code(chosen.reference)} answers here.")


def _providers(context: CommandContext) -> set[str]:
    return {known.provider for known in context.services.models.models()}


async def thinking(context: CommandContext, arguments: str) -> None:
    services, conversation = context.services, context.conversation
    settings = await services.settings.get(conversation.place)
    if not arguments:
        buttons = [Button(label=_marked(level, level == settings.thinking), command=f"/thinking {level}") for level in THINKING_LEVELS]
        said = f"Thinking is {code(settings.thinking)}. More of it is slower and dearer."
        await context.say(said + _thoughtless(context), *in_rows(buttons, across=3))
        return
    level = next((level for level in THINKING_LEVELS if level == arguments.lower()), None)
    if level is None:
        near = get_close_matches(arguments.lower(), THINKING_LEVELS, n=1)
        hint = f" Did you mean `/thinking {near[0]}`?" if near else ""
        raise UserMustAct(f"{code(arguments)} is no level. There are: {', '.join(THINKING_LEVELS)}.{hint}")
    await services.settings.change(conversation.place, thinking=level)
    await conversation.set_thinking(level)
    await context.say(f"Thinking is {code(level)} now." + ("" if level == "off" else _thoughtless(context)))


def _thoughtless(context: CommandContext) -> str:
    """A word about a model that does not think, whatever it is told."""
    reference = context.conversation.status().model
    try:
        answers = context.services.models.resolve(reference) if reference else None
    except UserMustAct:  # it is gone; the next message says so
        return ""
    return f" {code(reference)} does not think, so this counts once another model answers." if answers and not answers.reasoning else ""


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


async def _show_models(context: CommandContext, provider: str, models: Sequence[Model], first: int) -> None:
    """A page of a provider's models, counted from ``first``, with a button for the next."""
    now = context.conversation.status().model
    page = models[max(first, 1) - 1 :][:_MOST_BUTTONS] or models[:_MOST_BUTTONS]
    rows = in_rows([_button(known, now) for known in page], across=1)
    behind = models.index(page[-1]) + 1
    which = "Models" if len(page) == len(models) else f"Models {behind - len(page) + 1} to {behind} of {len(models)}"
    if behind < len(models):
        rows.append([Button(label="More…", command=f"/model {provider} {behind + 1}")])
    await context.say(f"{which} of {code(provider)}. Any other that it has can be named: `/model {provider}/name`.", *rows)


def _button(known: Model, now: str) -> Button:
    return Button(
        label=_marked(one_line(known.name or known.reference, limit=40), known.reference == now), command=f"/model {known.reference}"
    )


def _marked(label: str, chosen: bool) -> str:
    return f"✓ {label}" if chosen else label
