"""The ``history`` tool: what was said in this chat, however long ago."""

from datetime import datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from features.contracts.chat import Address
from features.contracts.errors import ModelMustAct
from features.contracts.memory import LoggedText, PlaceLog
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result

__all__ = ["HistoryTool"]

_DEFAULT_SHOWN = 20
_MOST_SHOWN = 50
_CHARS_EACH = 400
_CHARS_OF_ONE = 20_000
_MOST_WORDS = 10


class HistoryTool:
    """Implements ``features.contracts.tools.Tool``. The place is bound to it; no argument leads to another one."""

    label = "History"
    prompt_snippet = "history: search all that was ever said in this chat"
    prompt_guidelines: tuple[str, ...] = (
        "What was said before this conversation began is found with history; look there before you say that you do not know.",
    )
    execution: Literal["parallel", "sequential"] = "parallel"

    def __init__(self, log: PlaceLog, place: Address) -> None:
        self._log = log
        self._place = place
        self.spec = ToolSpec(
            name="history",
            description=(
                "Search the full log of this chat, people's messages and yours, from all sessions and topics, newest first. "
                f"Without a query the latest messages. Long ones are cut; `message` shows one whole. At most {_MOST_SHOWN} a call."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words that a message must all hold, in any case"},
                    "since": {"type": "string", "description": "First day, YYYY-MM-DD in this chat's zone"},
                    "until": {"type": "string", "description": "Last day, YYYY-MM-DD in this chat's zone"},
                    "before": {"type": "string", "description": "Id of a message: only what was said before it"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_SHOWN, "description": f"Default {_DEFAULT_SHOWN}"},
                    "message": {"type": "string", "description": "Id of one message to show whole; everything else is ignored"},
                },
            },
        )

    async def run(self, call: ToolInvocation) -> ToolResult:
        arguments = call.arguments
        zone = ZoneInfo(call.context.time_zone)
        if wanted := arguments.get("message", "").strip():
            return text_result(await self._one(wanted, zone))
        words = arguments.get("query", "").split()
        if len(words) > _MOST_WORDS:
            raise ModelMustAct(f"history: at most {_MOST_WORDS} words at once; leave out the common ones")
        until = _day(arguments.get("until"), "until", zone)
        page = await self._log.search(
            str(self._place),
            words,
            since=_day(arguments.get("since"), "since", zone),
            until=until + timedelta(days=1) if until is not None else None,
            before=arguments.get("before") or None,
            limit=arguments.get("limit", _DEFAULT_SHOWN),
        )
        lines = [_entry(message, words, zone, self._place) for message in page.messages]
        if page.more_before is not None:
            lines.append(f"[There may be more: go on with before={page.more_before}]")
        return text_result("\n\n".join(lines) or "(nothing found)")

    async def _one(self, message_id: str, zone: ZoneInfo) -> str:
        message = await self._log.message(str(self._place), message_id)
        if message is None:
            raise ModelMustAct(f"history: there is no message {message_id[:60]!r} in this chat")
        text = message.text
        if len(text) > _CHARS_OF_ONE:
            text = f"{text[:_CHARS_OF_ONE]}\n[cut: the message has {len(message.text)} characters]"
        return f"{_head(message, zone, self._place)}\n{text}"


def _entry(message: LoggedText, words: list[str], zone: ZoneInfo, place: Address) -> str:
    return f"{_head(message, zone, place)}\n{_excerpt(message.text, words)}"


def _head(message: LoggedText, zone: ZoneInfo, place: Address) -> str:
    who = message.name if message.role == "person" else "you"
    topic = "" if message.address == str(place) else f", in {message.address}"
    return f"[{message.id}] {message.at.astimezone(zone):%a %Y-%m-%d %H:%M} {' '.join(who.split())[:60]}{topic}:"


def _excerpt(text: str, words: list[str]) -> str:
    """The text, or the part of it around the first word that was looked for."""
    if len(text) <= _CHARS_EACH:
        return text
    at = text.casefold().find(words[0].casefold()) if words else 0
    start = max(0, min(at - _CHARS_EACH // 4, len(text) - _CHARS_EACH))
    end = start + _CHARS_EACH
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"


def _day(written: str | None, name: str, zone: ZoneInfo) -> datetime | None:
    if written is None or not written.strip():
        return None
    try:
        day = datetime.fromisoformat(written.strip()).date()
    except ValueError:
        raise ModelMustAct(f"history: {name} is {written[:40]!r}; write the day as YYYY-MM-DD") from None
    return datetime.combine(day, time(), zone)
