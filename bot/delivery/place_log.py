"""All that was said in a place, to be searched by its agent. Inbox and outbox are the log; nothing is kept twice."""

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime

from bot.delivery.schema import decode_inbound, decode_outbound
from features.contracts.database import Database, Row
from features.contracts.memory import LoggedText, LogPage

__all__ = ["DatabasePlaceLog"]

_IN = "SELECT id, 'person' AS role, address, message, received_at AS at FROM inbox WHERE place = ? AND kind <> 'job'"
_OUT = "SELECT id, 'agent' AS role, address, message, created_at AS at FROM outbox WHERE place = ? AND state <> 'held'"
_ROWS_AT_ONCE = 500
_MOST_ROWS = 20_000
_DONE_TO_AN_EARLIER_ONE = {"edit": "(edited) ", "deletion": "(deleted an earlier message) "}
_PLAIN_RUN = re.compile(r"[A-Za-z0-9-]{2,}")


class DatabasePlaceLog:
    """Implements ``features.contracts.memory.PlaceLog``.

    What ASCII letters of the words can exclude, the database does; the rest is compared here, so that capitals of every script count.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(
        self,
        place: str,
        words: Sequence[str],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        before: str | None = None,
        limit: int,
    ) -> LogPage:
        wanted = [word.casefold() for word in words]
        found: list[LoggedText] = []
        for _ in range(_MOST_ROWS // _ROWS_AT_ONCE):
            rows = await self._rows(place, words, before)
            texts = await asyncio.to_thread(_all_logged, rows)
            for text in texts:
                if since is not None and text.at < since:
                    return LogPage(messages=tuple(found), more_before=None)
                if (until is None or text.at < until) and _holds(text.text, wanted):
                    if len(found) == limit:
                        return LogPage(messages=tuple(found), more_before=found[-1].id)
                    found.append(text)
            if len(rows) < _ROWS_AT_ONCE:
                return LogPage(messages=tuple(found), more_before=None)
            before = rows[-1][0]
        return LogPage(messages=tuple(found), more_before=before)

    async def message(self, place: str, message_id: str) -> LoggedText | None:
        sql = f"{_IN} AND id = ? UNION ALL {_OUT} AND id = ?"
        row = await self._database.read(lambda t: t.fetch_one(sql, (place, message_id, place, message_id)))
        return None if row is None else _logged(row)

    async def _rows(self, place: str, words: Sequence[str], before: str | None) -> list[Row]:
        """The newest rows before an id that may hold the words."""
        conditions, values = "", [place]
        runs = [max(found, key=len) for word in words if (found := _PLAIN_RUN.findall(word))]
        if before is not None:
            conditions += " AND id < ?"
            values.append(before)
        for run in runs:
            conditions += " AND lower(message) LIKE ?"
            values.append(f"%{run.lower()}%")
        each = f"SELECT * FROM ({{}}{conditions} ORDER BY id DESC LIMIT {_ROWS_AT_ONCE}) AS part"  # noqa: S608 - no value in it
        sql = f"{each.format(_IN)} UNION ALL {each.format(_OUT)} ORDER BY id DESC LIMIT {_ROWS_AT_ONCE}"
        return await self._database.read(lambda t: t.fetch_all(sql, (*values, *values)))


def _holds(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _all_logged(rows: Sequence[Row]) -> list[LoggedText]:
    return [_logged(row) for row in rows]


def _logged(row: Row) -> LoggedText:
    message_id, role, address, message, at = row
    moment = datetime.fromisoformat(at)
    if role == "person":
        said = decode_inbound(message)
        files = "".join(f"\n[{attachment.kind}: {attachment.name}]" for attachment in said.attachments)
        text = f"{_DONE_TO_AN_EARLIER_ONE.get(said.kind, '')}{said.text}{files}"
        return LoggedText(id=message_id, address=address, role="person", name=said.sender.name, text=text, at=moment)
    told = decode_outbound(message)
    files = "".join(f"\n[file: {file.name}]" for file in told.files)
    return LoggedText(id=message_id, address=address, role="agent", name="", text=f"{told.text}{files}", at=moment)
