"""What was said in a thread before the bot was asked."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from channels.slack.api import Flooded, Me, SlackApi, SlackRefusal, SlackUnreachable
from channels.slack.inbound_text import mentioned, readable
from channels.slack.people import People
from channels.slack.rate_gate import RateGate
from features.contracts.chat import Address, Overheard, Person

__all__ = ["earlier_messages"]

_METHOD = "conversations.replies"
_PAGE = 200
_MAX_PAGES = 5


async def earlier_messages(
    api: SlackApi, gate: RateGate, people: People, me: Me, address: Address, *, before: str, after: str | None, limit: int
) -> list[Overheard]:
    """The latest ``limit`` messages of a thread between two of its messages, both left out, in order.

    The bot's own are among them where ``after`` is None: a new session does not know them.
    Gives none where Slack does not tell: the answer matters more.
    """
    if address.thread is None:
        return []
    channel, found, cursor = address.chat.partition("/")[2], [], ""
    try:
        for _ in range(_MAX_PAGES):
            await gate.turn(_METHOD, channel)
            page = await api.call(
                _METHOD, form=True, channel=channel, ts=address.thread, oldest=after, latest=before, limit=_PAGE, cursor=cursor or None
            )
            found += [each for each in page.get("messages", ()) if _wanted(each, me, before, after)]
            cursor = (page.get("response_metadata") or {}).get("next_cursor", "")
            if not cursor:
                break
    except Flooded as flood:
        gate.close(_METHOD, channel, flood.seconds)
    except (SlackRefusal, SlackUnreachable):
        pass
    found = sorted(found, key=lambda each: float(each["ts"]))[-limit:]
    names = await people.names({user for each in found for user in (*mentioned(each.get("text", "")), each.get("user", "")) if user})
    return [_overheard(each, me, names) for each in found]


def _wanted(message: Mapping[str, Any], me: Me, before: str, after: str | None) -> bool:
    ts = float(message["ts"])
    own = message.get("user") == me.user_id or (message.get("bot_id") and message.get("bot_id") == me.bot_id)
    inside = ts < float(before) and (after is None or ts > float(after))
    return bool(inside and not (own and after is not None) and (message.get("text") or message.get("files")))


def _overheard(message: Mapping[str, Any], me: Me, names: Mapping[str, str]) -> Overheard:
    user = str(message.get("user") or message.get("bot_id") or "")
    name = "you" if user == me.user_id else names.get(user) or message.get("username") or user
    files = ", ".join(str(file.get("name") or "a file") for file in message.get("files") or ())
    text = readable(str(message.get("text") or ""), me=me.user_id, names=names)
    return Overheard(
        sender=Person(id=f"slack:{message.get('team') or me.team_id}/{user}", name=str(name)),
        text=" ".join(part for part in (text, f"[sent: {files}]" if files else "") if part),
        sent_at=datetime.fromtimestamp(float(message["ts"]), UTC),
        ref=str(message["ts"]),
    )
