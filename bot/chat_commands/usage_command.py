"""Tokens and money."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from zoneinfo import ZoneInfo

from bot.chat_commands.context import CommandContext, UsageFigures
from bot.chat_commands.markdown import code, one_line
from features.contracts.chat import Button
from features.contracts.errors import UserMustAct

__all__ = ["usage"]

_DAYS = {"day": 1, "week": 7, "month": 30}
_HEADINGS = {"day": "Today", "week": "The last 7 days", "month": "The last 30 days"}
_MOST_MODELS = 12


@dataclass(frozen=True, slots=True)
class _Sum:
    """Calls, tokens and US dollars."""

    calls: int = 0
    read: int = 0
    written: int = 0
    cost: float = 0.0

    def __add__(self, other: "_Sum") -> "_Sum":
        return _Sum(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def cells(self) -> tuple[str, str, str, str]:
        return str(self.calls), _short(self.read), _short(self.written), f"${self.cost:.2f}"


async def usage(context: CommandContext, arguments: str) -> None:
    span = arguments.lower() or "day"
    if span not in _DAYS:
        near = get_close_matches(span, _DAYS, n=1)
        raise UserMustAct(f"{code(arguments)} is none of day, week, month." + (f" Did you mean `/usage {near[0]}`?" if near else ""))
    services, place = context.services, context.conversation.place
    zone = ZoneInfo((await services.settings.get(place)).time_zone)
    today = services.clock.now().astimezone(zone).date()
    figures = await services.usage.totals(str(place), today - timedelta(days=_DAYS[span] - 1))
    buttons = [Button(label=other.capitalize(), command=f"/usage {other}") for other in _DAYS if other != span]
    if not figures:
        await context.say(f"**{_HEADINGS[span]}**: nothing was used.", buttons)
        return
    tables = [_by_model(figures)]
    if span != "day":
        tables.append(_by_day(figures))
    await context.say(f"**{_HEADINGS[span]}**\n\n" + "\n\n".join(f"```\n{table}\n```" for table in tables), buttons)


def _by_model(figures: Sequence[UsageFigures]) -> str:
    sums: dict[str, _Sum] = {}
    for row in figures:
        sums[row.model] = sums.get(row.model, _Sum()) + _Sum(
            calls=row.calls, read=row.input + row.cache_read + row.cache_write, written=row.output, cost=row.cost
        )
    ranked = sorted(sums.items(), key=lambda item: (-item[1].cost, item[0]))
    rows = ranked[:_MOST_MODELS]
    if rest := ranked[_MOST_MODELS:]:
        rows.append(("others", sum((amount for _, amount in rest), _Sum())))
    if len(rows) > 1:
        rows.append(("all", sum((amount for _, amount in ranked), _Sum())))
    return _table(("model", "calls", "in", "out", "cost"), [(one_line(model, limit=28), *amount.cells()) for model, amount in rows])


def _by_day(figures: Sequence[UsageFigures]) -> str:
    days: dict[date, tuple[int, float]] = {}
    for row in figures:
        calls, cost = days.get(row.day, (0, 0.0))
        days[row.day] = (calls + row.calls, cost + row.cost)
    return _table(
        ("day", "calls", "cost"), [(f"{day:%a %d %b}", str(calls), f"${cost:.2f}") for day, (calls, cost) in sorted(days.items())]
    )


def _short(tokens: int) -> str:
    if tokens < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Text columns: the first to the left, figures to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in [head, *rows]
    )
