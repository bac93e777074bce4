"""What people sent: judged, written down, then handed on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from bot.delivery.errands import Errands
from bot.delivery.schema import decode_inbound, encode_inbound, marks, writable
from features.contracts.chat import Address, Cursor, DueRun, InboundMessage, Person
from features.contracts.clock import Clock
from features.contracts.database import Database, Row, Transaction
from features.contracts.errors import SessionBusyError
from features.contracts.places import moved_address, readdress
from features.contracts.sessions import TransactionWork

__all__ = ["Gate", "Inbox", "Judgement", "RefusalReply", "StoredMessage", "UnfinishedTurn", "answered", "consumed"]

log = logging.getLogger("pumice.inbox")

_MOST_OWN = 32
_COLUMNS = "id, message, owner, received_at, position"


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is on the disk. ``owner`` says whether an owner of the host sent it; ``position`` rises with every message taken."""

    id: str
    message: InboundMessage
    owner: bool
    received_at: datetime
    position: int = 0


class UnfinishedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that a session took in before the host died, and that nothing answers yet. ``people`` said them."""

    address: Address
    session_id: str
    message_ids: tuple[str, ...]
    reply_to: str | None = None
    group: bool = False
    owner: bool = False
    people: frozenset[str] = frozenset()
    attended: bool = True


class Judgement(Protocol):
    """What the gate says of one message; ``reply`` and ``tell_owners`` are texts to deliver, mostly absent."""

    @property
    def admitted(self) -> bool: ...

    @property
    def owner(self) -> bool: ...

    @property
    def reply(self) -> str | None: ...

    @property
    def tell_owners(self) -> str | None: ...


class Gate(Protocol):
    """Decides who may talk here; ``bot.access.Access`` does."""

    async def judge(self, message: InboundMessage) -> Judgement: ...


RefusalReply = Callable[[InboundMessage, Judgement], Awaitable[None]]
"""Delivers what the gate wants said about a message that was not admitted."""


class Inbox:
    """Implements ``InboundSink``. Whoever is not admitted leaves no trace here.

    Args:
        hand_over: called on the loop for each new message, in order, once it is on the disk.
        refused: called for each message that the gate did not admit and wants something said about.
        moved: called for a place that has another id now; returns when everything has followed.
    """

    def __init__(
        self,
        database: Database,
        gate: Gate,
        *,
        clock: Clock,
        ids: Callable[[], str],
        hand_over: Callable[[StoredMessage], None],
        refused: RefusalReply,
        moved: Callable[[Address, Address], Awaitable[None]],
    ) -> None:
        self._database = database
        self._gate = gate
        self._clock = clock
        self._ids = ids
        self._hand_over = hand_over
        self._refused = refused
        self._moved = moved
        self._errands = Errands(log, ids)

    async def accept(self, messages: Sequence[InboundMessage], cursor: Cursor | None = None) -> None:
        await self.take(messages, cursor)

    async def moved(self, old: Address, new: Address) -> None:
        await self._moved(old, new)

    async def take(self, messages: Sequence[InboundMessage], cursor: Cursor | None = None) -> tuple[StoredMessage, ...]:
        """``accept`` that tells which messages were new."""
        admitted: list[StoredMessage] = []
        for message in messages:
            verdict = await self._gate.judge(message)
            if verdict.admitted:
                stored = StoredMessage(id=self._ids(), message=writable(message), owner=verdict.owner, received_at=self._clock.now())
                admitted.append(stored)
            elif verdict.reply is not None or verdict.tell_owners is not None:
                self._errands.start(self._say_refusal(message, verdict), name="inbox refusal")
        if not admitted and cursor is None:
            return ()
        # Shielded: a caller that goes away must not leave messages on the disk that nobody works on.
        storing = asyncio.ensure_future(self._store(admitted, cursor))
        storing.add_done_callback(_retrieve)
        return await asyncio.shield(storing)

    async def take_own(self, message: InboundMessage, *, owner: bool) -> None:
        """Take what no person sent; it is on the disk when this returns.

        Raises:
            SessionBusyError: 32 of this chat wait already.
        """
        if await self._count_own(message.address) >= _MOST_OWN:
            raise SessionBusyError(f"{_MOST_OWN} prompts of extensions wait in this chat already")
        stored = StoredMessage(id=self._ids(), message=writable(message), owner=owner, received_at=self._clock.now())
        storing = asyncio.ensure_future(self._store([stored], None))
        storing.add_done_callback(_retrieve)
        await asyncio.shield(storing)

    async def _count_own(self, address: Address) -> int:
        sql = "SELECT count(*) FROM inbox WHERE address = ? AND kind = 'extension' AND state = 'waiting'"
        row = await self._database.read(lambda t: t.fetch_one(sql, (str(address),)))
        return 0 if row is None else int(row[0])

    async def mark_consumed(self, message_ids: tuple[str, ...], *, session_id: str, entry_id: str) -> None:
        """Note that messages are in a session already, before its run begins."""
        await self._database.write(consumed(message_ids, run_id="", session_id=session_id, entry_id=entry_id))

    async def cursor(self, name: str) -> int | None:
        row = await self._database.read(lambda t: t.fetch_one("SELECT value FROM cursors WHERE name = ?", (name,)))
        return None if row is None else int(row[0])

    async def close(self) -> None:
        await self._errands.close()

    async def _store(self, admitted: Sequence[StoredMessage], cursor: Cursor | None) -> tuple[StoredMessage, ...]:
        taken = await self._database.write(lambda t: _insert(t, admitted, cursor))
        for stored in taken:
            self._hand_over(stored)
        return taken

    async def _say_refusal(self, message: InboundMessage, verdict: Judgement) -> None:
        await self._refused(message, verdict)

    # What waits, and what is known of it

    async def waiting(self, address: Address, *, after: int, limit: int) -> list[StoredMessage]:
        """The messages of one chat that nothing has taken in yet, in order, from beyond a position."""
        sql = f"SELECT {_COLUMNS} FROM inbox WHERE address = ? AND state = 'waiting' AND position > ? ORDER BY position LIMIT ?"  # noqa: S608
        rows = await self._database.read(lambda t: t.fetch_all(sql, (str(address), after, limit)))
        return [_stored(row) for row in rows]

    async def waiting_addresses(self) -> tuple[list[Address], int]:
        """Where something waits, the longest waiting first; and the position of the newest message of all."""

        def work(transaction: Transaction) -> tuple[list[Row], int]:
            rows = transaction.fetch_all("SELECT address FROM inbox WHERE state = 'waiting' GROUP BY address ORDER BY min(position)")
            return rows, _last_position(transaction)

        rows, last = await self._database.read(work)
        return [Address.parse(row[0]) for row in rows], last

    async def unfinished(self) -> list[UnfinishedTurn]:
        """What was taken in and not answered when the host ended, one per session, in order."""
        sql = "SELECT id, address, session_id, message, owner FROM inbox WHERE state = 'consumed' ORDER BY position"
        rows = await self._database.read(lambda t: t.fetch_all(sql))
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            groups.setdefault((row[1], row[2]), []).append(row)
        turns: list[UnfinishedTurn] = []
        for (address, session_id), members in groups.items():
            messages = [decode_inbound(row[3]) for row in members]
            first = messages[0]
            turns.append(
                UnfinishedTurn(
                    address=Address.parse(address),
                    session_id=session_id,
                    message_ids=tuple(row[0] for row in members),
                    reply_to=first.under or (first.ref if first.group else None),
                    group=first.group,
                    owner=all(bool(row[4]) for row in members),
                    people=frozenset(message.sender.id for message in messages),
                    attended=all(message.attended for message in messages),
                )
            )
        return turns

    async def find(self, address: Address, ref: str) -> tuple[StoredMessage, str] | None:
        """The message that a platform's id names, and its state."""
        sql = f"SELECT {_COLUMNS}, state FROM inbox WHERE address = ? AND ref = ? AND kind = 'message'"  # noqa: S608
        row = await self._database.read(lambda t: t.fetch_one(sql, (str(address), ref)))
        return None if row is None else (_stored(row), row[5])

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        """What was said stays in the log. The platform's ids of it mean other messages in the new chat, so they are forgotten."""

        def work(transaction: Transaction) -> None:
            rows = transaction.fetch_all(
                "SELECT id, message FROM inbox WHERE place = ? AND state IN ('waiting', 'consumed')", (str(old.place),)
            )
            for message_id, text in rows:
                message = decode_inbound(text)
                moved = msgspec.structs.replace(message, address=moved_address(message.address, old, new), ref=None, under=None)
                transaction.execute("UPDATE inbox SET message = ? WHERE id = ?", (encode_inbound(moved), message_id))
            transaction.execute("UPDATE inbox SET ref = NULL WHERE place = ?", (str(old.place),))
            readdress(transaction, "inbox", "address", old, new)
            readdress(transaction, "inbox", "place", old, new)

        return work

    def place_moved(self, old: Address, new: Address) -> None:
        """Nothing is kept in memory."""

    # What no person sent

    def put(self, run: DueRun, stored: Callable[[StoredMessage], None]) -> TransactionWork:
        """SQL that puts a scheduled run among the messages of its chat, once.

        Args:
            stored: told of the message, on the database's thread, within the transaction.
        """
        address = Address("job", run.job_id) if run.isolated else run.address
        message = InboundMessage(
            key=run.key or f"job:{run.id}",
            address=address,
            sender=Person(id=run.by or f"job:{run.job_id}", name="Schedule"),
            text=run.text,
            sent_at=run.due_at,
            kind="job",
            attended=False,
            run=msgspec.structs.replace(run, text=""),
        )
        put = StoredMessage(id=run.id, message=writable(message), owner=run.owner, received_at=self._clock.now())

        def work(transaction: Transaction) -> None:
            for taken in _insert(transaction, [put], None):
                stored(taken)

        return work

    async def count_waiting(self, address: Address) -> int:
        """How many messages of a chat nothing has taken in yet."""
        sql = "SELECT count(*) FROM inbox WHERE address = ? AND state = 'waiting'"
        row = await self._database.read(lambda t: t.fetch_one(sql, (str(address),)))
        assert row is not None
        return int(row[0])

    async def states(self, message_ids: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Messages with their states (``waiting``, ``consumed``, ``answered``, ``skipped``) and whether a person's message is taken in with
        them. What is not there is left out.
        """
        sql = (
            "SELECT id, state, EXISTS (SELECT 1 FROM inbox AS other WHERE other.state = 'consumed' AND other.kind <> 'job'"  # noqa: S608
            f" AND other.run_id = inbox.run_id) FROM inbox WHERE id IN ({marks(tuple(message_ids))})"
        )
        rows = await self._database.read(lambda t: t.fetch_all(sql, tuple(message_ids)))
        return {row[0]: (row[1], bool(row[2])) for row in rows}

    async def ref_before(self, stored: StoredMessage) -> str | None:
        """The platform's id of the latest message of the same address that was taken before this one."""
        sql = (
            "SELECT ref FROM inbox WHERE address = ? AND position < ? AND kind = 'message' AND ref IS NOT NULL"
            " ORDER BY position DESC LIMIT 1"
        )
        row = await self._database.read(lambda t: t.fetch_one(sql, (str(stored.message.address), stored.position)))
        return None if row is None else str(row[0])

    async def replace(self, stored: StoredMessage) -> None:
        """Write a waiting message anew, as it reads after an edit."""
        values = (encode_inbound(stored.message), stored.id)
        await self._database.write(lambda t: t.execute("UPDATE inbox SET message = ? WHERE id = ? AND state = 'waiting'", values))

    async def close_without_answer(self, message_ids: tuple[str, ...], *, skipped: bool) -> None:
        """Mark messages that call for no run: a command that said nothing, or what is skipped."""
        state = "skipped" if skipped else "answered"
        sql = f"UPDATE inbox SET state = ? WHERE id IN ({marks(message_ids)}) AND state = 'waiting'"  # noqa: S608
        await self._database.write(lambda t: t.execute(sql, (state, *message_ids)))


def consumed(message_ids: tuple[str, ...], *, run_id: str, session_id: str, entry_id: str) -> TransactionWork:
    """SQL that marks messages as taken in by an entry of a session."""
    sql = f"UPDATE inbox SET state = 'consumed', run_id = ?, session_id = ?, entry_id = ? WHERE id IN ({marks(message_ids)})"  # noqa: S608

    def work(transaction: Transaction) -> None:
        transaction.execute(sql, (run_id, session_id, entry_id, *message_ids))

    return work


def answered(message_ids: tuple[str, ...], transaction: Transaction) -> None:
    """Mark messages as answered within a transaction."""
    if message_ids:
        transaction.execute(f"UPDATE inbox SET state = 'answered' WHERE id IN ({marks(message_ids)})", message_ids)  # noqa: S608


def _retrieve(task: asyncio.Future[tuple[StoredMessage, ...]]) -> None:
    """The caller may be gone; what it was not told it will find out by asking again."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("messages could not be stored", extra={"facts": {"error": type(error).__name__}})


def _insert(transaction: Transaction, admitted: Sequence[StoredMessage], cursor: Cursor | None) -> tuple[StoredMessage, ...]:
    taken: list[StoredMessage] = []
    position = _last_position(transaction) if admitted else 0
    for stored in admitted:
        message = stored.message
        if message.aliases and _taken_as(transaction, message.aliases):
            continue
        new = transaction.execute(
            "INSERT INTO inbox (id, position, key, address, place, kind, ref, message, owner, received_at, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting') ON CONFLICT DO NOTHING",
            (
                stored.id,
                position + 1,
                message.key,
                str(message.address),
                str(message.address.place),
                message.kind,
                message.ref,
                encode_inbound(message),
                int(stored.owner),
                stored.received_at.isoformat(),
            ),
        )
        if new:
            for alias in message.aliases:
                transaction.execute("INSERT INTO inbox_aliases (alias, message_id) VALUES (?, ?)", (alias, stored.id))
            position += 1
            taken.append(msgspec.structs.replace(stored, position=position))
    if cursor is not None:
        sql = "INSERT INTO cursors (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        transaction.execute(sql, (cursor.name, cursor.value))
    return tuple(taken)


def _taken_as(transaction: Transaction, aliases: tuple[str, ...]) -> bool:
    sql = f"SELECT 1 FROM inbox_aliases WHERE alias IN ({marks(aliases)})"  # noqa: S608
    return transaction.fetch_one(sql, aliases) is not None


def _last_position(transaction: Transaction) -> int:
    row = transaction.fetch_one("SELECT coalesce(max(position), 0) FROM inbox")
    assert row is not None
    return int(row[0])


def _stored(row: Row) -> StoredMessage:
    return StoredMessage(
        id=row[0], message=decode_inbound(row[1]), owner=bool(row[2]), received_at=datetime.fromisoformat(row[3]), position=int(row[4])
    )
