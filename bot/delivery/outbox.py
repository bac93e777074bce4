"""What the host says: written down, then delivered, in order per chat."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from random import Random

import msgspec

from bot.delivery.button_closer import ButtonCloser
from bot.delivery.delivery import COLUMNS, DRAFT_INTENDED, Delivery, forget, from_row, insert, note_draft, upsert
from bot.delivery.errands import Errands, within
from bot.delivery.lane import Lane, LaneServices
from bot.delivery.schema import decode_outbound, encode_outbound, whole
from features.contracts.chat import Address, Button, ChatChannel, OutboundMessage
from features.contracts.clock import Clock
from features.contracts.database import Database, Transaction
from features.contracts.errors import UserMustAct
from features.contracts.places import readdress
from features.contracts.sessions import TransactionWork

__all__ = ["CutRun", "Outbox"]

log = logging.getLogger("pumice.outbox")


class CutRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the drafts in a chat whose run was cut, perhaps more than once.

    ``draft`` is one that is on show; ``uncertain`` says that there may be one whose id is not known. Rows that hold nothing else stay,
    under ``run_ids``, until the answer takes their place.
    """

    run_ids: tuple[str, ...] = ()
    draft: str | None = None
    uncertain: bool = False


class Outbox:
    """One lane per address, with a sender while there is something to send.

    Args:
        redact: applied to every text that is posted.
        refused: told of a message that a platform will never take, with the reason in words for people.
        delivered: told of a message once the platform has all of it.
        changed: told of a delivered message that reads otherwise now.
        moved: told that a platform gave a place another id; it is to see to ``move_place``.
        where: an address as it reads by now, for whoever began before its place moved.
    """

    def __init__(
        self,
        database: Database,
        channels: Mapping[str, ChatChannel],
        *,
        clock: Clock,
        ids: Callable[[], str],
        random: Random,
        redact: Callable[[str], str],
        refused: Callable[[Delivery, str], Awaitable[None]],
        delivered: Callable[[Delivery], None],
        changed: Callable[[Delivery], None],
        moved: Callable[[Address, Address], None],
        where: Callable[[Address], Address],
    ) -> None:
        self._database = database
        self._channels = channels
        self._clock = clock
        self._ids = ids
        self._redact = redact
        self._services = LaneServices(
            database=database,
            channels=channels,
            clock=clock,
            random=random,
            ids=ids,
            refused=self._was_refused,
            delivered=self._was_delivered,
            moved=moved,
        )
        self._where = where
        self._refused = refused
        self._delivered = delivered
        self._buttons = ButtonCloser(database, channels, changed=changed)
        self._lanes: dict[Address, Lane] = {}
        self._storing: dict[str, asyncio.Future[None]] = {}
        self._errands = Errands(log, ids)

    # Posting

    async def post(
        self,
        address: Address,
        message: OutboundMessage,
        *,
        answers: tuple[str, ...] = (),
        also: Callable[[str], TransactionWork] | None = None,
    ) -> str:
        """Put a message; it is on the disk when this returns, and goes out after what was posted to this address before.

        Args:
            answers: ids of the accepted messages that it answers; they are marked in the same commit.
            also: makes further SQL of that commit, given the message's id.

        Raises:
            UserMustAct: no channel of that name is at work here.
        """
        address = self._where(address)
        if address.channel not in self._channels:
            raise UserMustAct(f"Nothing can be sent to {address}: this host has no {address.channel} channel.")
        lane = self._lane(address)
        delivery = Delivery(id=self._ids(), address=address, message=self._clean(message), created_at=self._clock.now(), answers=answers)
        delivery.state = "sending" if lane.empty else "pending"
        put = insert(delivery)
        await self._admit(lane, delivery, put if also is None else _both(put, also(delivery.id)))
        return delivery.id

    async def close_buttons(self, address: Address, delivery_id: str, ending: str) -> bool:
        """Take the buttons off a message, once it is out, and say under it what became of it.

        Returns:
            False if people cannot see that in their chat.
        """
        return await self._buttons.close(address, delivery_id, self._redact(ending))

    async def _admit(self, lane: Lane, delivery: Delivery, work: TransactionWork) -> None:
        # Shielded: whoever posts may be cancelled, and then the lane must still know whether the row is there.
        storing = asyncio.ensure_future(self._database.write(work))
        storing.add_done_callback(_retrieve)
        if lane.takes:
            self._storing[delivery.id] = storing
            lane.push(delivery)
        else:
            lane.leave_in_database(storing)
        self._start(lane)
        await asyncio.shield(storing)

    async def _stored(self, delivery: Delivery) -> bool:
        storing = self._storing.get(delivery.id)
        if storing is None:
            return True
        try:
            await asyncio.wait([storing])
            return not storing.cancelled() and storing.exception() is None
        finally:
            self._storing.pop(delivery.id, None)

    def _was_delivered(self, delivery: Delivery) -> None:
        self._delivered(delivery)
        self._buttons.settled(delivery)

    async def _was_refused(self, delivery: Delivery, reason: str) -> None:
        self._buttons.settled(delivery)
        await self._refused(delivery, reason)

    # The one row of a run

    def run_delivery(self, address: Address, message: OutboundMessage, *, run_id: str, answers: tuple[str, ...]) -> Delivery:
        """A delivery that a run keeps until it is released; nothing is stored yet."""
        return Delivery(
            id=self._ids(), address=self._where(address), message=self._clean(message), created_at=self._clock.now(), run_id=run_id,
            answers=answers,
        )  # fmt: skip

    def put(self, delivery: Delivery, *, final: bool, replaces: tuple[str, ...] = ()) -> TransactionWork:
        """SQL that writes a run's row.

        Args:
            replaces: cut runs whose place it takes.
            final: the run ends here as far as one can know. Then the row is written as ``sending`` where nothing is ahead of it, so that
                nothing has to be written between now and the sending.
        """
        delivery.id = self._ids()
        delivery.created_at = self._clock.now()
        delivery.message = self._clean(delivery.message)
        if final:
            delivery.state = "pending" if delivery.address in self._lanes else "sending"
        else:
            delivery.state = "held"
        return upsert(delivery, replaces)

    def put_beside(self, address: Address, message: OutboundMessage) -> TransactionWork:
        """SQL that posts a message that answers nothing, for somebody else's transaction; ``look`` once that is over."""
        delivery = Delivery(id=self._ids(), address=self._where(address), message=self._clean(message), created_at=self._clock.now())
        return insert(delivery)

    def look(self, address: Address) -> None:
        """Send what has come into the database beside this outbox."""
        self._wake(self._where(address))

    async def write(self, work: TransactionWork) -> None:
        await self._database.write(work)

    def write_soon(self, work: TransactionWork) -> asyncio.Task[None]:
        """Write without waiting for it; what fails is logged."""
        return self._errands.start(self._database.write(work), name="outbox note")

    def note_draft(self, run_id: str, ref: str) -> None:
        """Keep the id of the draft of a run that is going on, without waiting."""
        self.write_soon(note_draft(run_id, ref))

    async def release(self, delivery: Delivery) -> None:
        """Send the row of a run that has ended; it has been stored as it is."""
        lane = self._lane(delivery.address)
        if lane.takes:
            lane.push(delivery)
            self._start(lane)
            return
        delivery.state = "pending"
        await self._admit(lane, delivery, upsert(delivery))

    # Starting and ending

    async def recover(self, place: Address | None = None) -> dict[Address, CutRun]:
        """Take up what an earlier process left, for the channels that are at work here; or what a place left that has moved.

        What may have been sent is marked as a possible duplicate, unless its draft is known: replacing that once more changes nothing.

        Returns:
            the chats in which a run was cut that had shown at most a draft.
        """
        channels = tuple(self._channels)
        addresses, cut = await self._database.write(lambda t: _recover(t, channels, place))
        for address in addresses:
            self._wake(address)
        return cut

    async def forget(self, cut: CutRun) -> None:
        """Give up a cut run that nothing has to answer for."""
        await self._database.write(forget(cut.run_ids))

    @property
    def idle(self) -> bool:
        """Nothing is being sent, nor written without somebody waiting for it."""
        return not len(self._errands)

    async def drain(self, seconds: float) -> bool:
        """Wait until everything is out, at most so long; False if something is left."""
        return self.idle or await within(self._clock, seconds, self._errands.settle())

    async def close(self) -> None:
        await self._errands.close()

    # Places that move

    async def rest(self, places: Collection[Address]) -> None:
        """Send nothing more to these places; what waits for them stays in the database until ``recover``."""
        senders = [lane.sender for address, lane in self._lanes.items() if address.place in places and lane.sender is not None]
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        """What was delivered stays in the log. The platform's ids of it mean other messages in the new chat, so they are forgotten."""
        before = str(old.place)

        def work(transaction: Transaction) -> None:
            sql = "SELECT id, message, done_parts FROM outbox WHERE place = ? AND state IN ('held', 'pending', 'sending')"
            for delivery_id, text, done in transaction.fetch_all(sql, (before,)):
                message = encode_outbound(msgspec.structs.replace(decode_outbound(text), reply_to=None))
                refs = msgspec.json.encode([None] * done).decode()
                transaction.execute("UPDATE outbox SET message = ?, refs = ? WHERE id = ?", (message, refs, delivery_id))
            transaction.execute("UPDATE outbox SET draft_ref = NULL WHERE place = ? AND draft_ref <> ?", (before, DRAFT_INTENDED))
            transaction.execute("UPDATE outbox SET refs = '[]' WHERE place = ? AND state IN ('sent', 'refused')", (before,))
            readdress(transaction, "outbox", "address", old, new)
            readdress(transaction, "outbox", "place", old, new)

        return work

    def place_moved(self, old: Address, new: Address) -> None:
        """Nothing is kept in memory while nothing is sent."""

    # Lanes

    def _clean(self, message: OutboundMessage) -> OutboundMessage:
        files = tuple(msgspec.structs.replace(file, caption=whole(self._redact(file.caption))) for file in message.files)
        buttons = tuple(
            tuple(Button(label=whole(button.label), command=whole(button.command)) for button in row) for row in message.buttons
        )
        return msgspec.structs.replace(message, text=whole(self._redact(message.text)), files=files, buttons=buttons)

    def _lane(self, address: Address) -> Lane:
        return self._lanes.get(address) or Lane(address, self._services)

    def _wake(self, address: Address) -> None:
        lane = self._lane(address)
        lane.more = True
        self._start(lane)

    def _start(self, lane: Lane) -> None:
        if lane.address not in self._lanes:
            self._lanes[lane.address] = lane
            lane.sender = self._errands.start(self._serve(lane), name=f"outbox {lane.address}")

    async def _serve(self, lane: Lane) -> None:
        try:
            await lane.serve(self._stored)
        finally:
            del self._lanes[lane.address]


def _both(one: TransactionWork, other: TransactionWork) -> TransactionWork:
    def work(transaction: Transaction) -> None:
        one(transaction)
        other(transaction)

    return work


def _recover(transaction: Transaction, channels: tuple[str, ...], place: Address | None) -> tuple[list[Address], dict[Address, CutRun]]:
    sql = f"SELECT {COLUMNS} FROM outbox WHERE state IN ('held', 'pending', 'sending') ORDER BY position"  # noqa: S608
    addresses: dict[Address, None] = {}
    cut: dict[Address, CutRun] = {}
    for row in transaction.fetch_all(sql):
        delivery = from_row(row)
        if delivery.address.channel not in channels or place not in (None, delivery.address.place):
            continue
        uncertain = row[7] == DRAFT_INTENDED
        if not delivery.message.text and not delivery.message.files and delivery.run_id is not None:
            known = cut.get(delivery.address, CutRun())
            cut[delivery.address] = CutRun(
                run_ids=(*known.run_ids, delivery.run_id),
                draft=known.draft or delivery.draft,
                uncertain=known.uncertain or uncertain,
            )
            continue
        if uncertain and delivery.state == "held":  # its draft may show some of what the run was about to say next
            known = cut.get(delivery.address, CutRun())
            cut[delivery.address] = msgspec.structs.replace(known, uncertain=True)
        may_be_there = uncertain or (delivery.state == "sending" and (delivery.draft is None or delivery.done > 0))
        message = msgspec.structs.replace(delivery.message, possible_duplicate=True) if may_be_there else delivery.message
        transaction.execute("UPDATE outbox SET state = 'pending', message = ? WHERE id = ?", (encode_outbound(message), delivery.id))
        addresses[delivery.address] = None
    return list(addresses), cut


def _retrieve(task: asyncio.Future[None]) -> None:
    """Whoever posted may be gone; the failure is told once, here or there."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("a message could not be stored", extra={"facts": {"error": type(error).__name__}})
