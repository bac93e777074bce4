"""What goes out to one chat, strictly in order."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from random import Random

import msgspec

from bot.delivery.delivery import COLUMNS, Delivery, from_row, store_progress
from bot.delivery.errands import FULL_DISK_DELAY_S
from features.contracts.chat import Address, ChatChannel, DeliveryRefused, DeliveryUncertain, PlaceMoved
from features.contracts.clock import Clock
from features.contracts.database import Database
from features.contracts.errors import OperatorMustAct, RetryLater
from features.contracts.sessions import TransactionWork

__all__ = ["Lane", "LaneServices"]

log = logging.getLogger("pumice.outbox")

_IN_MEMORY = 32
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 300.0
_DEFECTS_FORGIVEN = 3


class LaneServices(msgspec.Struct, frozen=True, kw_only=True):
    """What every lane works with. ``refused`` is told of what a platform will never take, ``delivered`` of what it has taken,
    ``moved`` of a place that has another id."""

    database: Database
    channels: Mapping[str, ChatChannel]
    clock: Clock
    random: Random
    ids: Callable[[], str]
    refused: Callable[[Delivery, str], Awaitable[None]]
    delivered: Callable[[Delivery], None]
    moved: Callable[[Address, Address], None]


class Lane:
    """The queue of one address and its sender.

    At most 32 messages are held here; ``more`` says that others wait in the database, which are older than anything posted later.
    """

    def __init__(self, address: Address, services: LaneServices) -> None:
        self.address = address
        self.more = False
        self.sender: asyncio.Task[None] | None = None
        self._moved = False
        self._services = services
        self._rows: deque[Delivery] = deque()
        self._loading = False
        self._being_stored: set[asyncio.Future[None]] = set()

    @property
    def empty(self) -> bool:
        return not self._rows and not self.more and not self._loading

    @property
    def takes(self) -> bool:
        """Whether the next message can be held here without overtaking one that waits in the database."""
        return not self.more and not self._loading and len(self._rows) < _IN_MEMORY

    def push(self, delivery: Delivery) -> None:
        self._rows.append(delivery)

    def leave_in_database(self, storing: asyncio.Future[None]) -> None:
        """A message for which there is no room here; it is loaded when its turn comes."""
        self.more = True
        self._being_stored.add(storing)
        storing.add_done_callback(self._being_stored.discard)

    async def serve(self, stored: Callable[[Delivery], Awaitable[bool]]) -> None:
        """Send everything that is there. ``stored`` waits until a message is on the disk and says whether it is."""
        while not self.empty and not self._moved:
            if not self._rows:
                await self._load()
                continue
            delivery = self._rows[0]
            if await stored(delivery):
                await self._deliver(delivery)
            if self._rows and self._rows[0] is delivery:
                self._rows.popleft()

    async def _load(self) -> None:
        sql = f"SELECT {COLUMNS} FROM outbox WHERE address = ? AND state = 'pending' ORDER BY position LIMIT {_IN_MEMORY}"  # noqa: S608
        self.more, self._loading = False, True
        try:
            if self._being_stored:
                await asyncio.wait(set(self._being_stored))
            rows = await self._services.database.read(lambda t: t.fetch_all(sql, (str(self.address),)))
        finally:
            self._loading = False
        self._rows.extend(from_row(row) for row in rows)
        self.more = self.more or len(rows) == _IN_MEMORY

    async def _deliver(self, delivery: Delivery) -> None:
        defects = 0
        while delivery.state not in ("sent", "refused") and not self._moved:
            if delivery.state != "sending":
                delivery.state = "sending"
                while not await self._record(store_progress(delivery)):  # unrecorded, a crash would send it twice and say nothing
                    await self._services.clock.sleep(FULL_DISK_DELAY_S)
            try:
                await self._services.channels[self.address.channel].send(self.address, delivery.message, _Progress(self, delivery))
            except DeliveryRefused as refusal:
                await self._refuse(delivery, str(refusal))
            except PlaceMoved as moved:
                await self._follow(delivery, moved.new)
            except RetryLater as later:
                await self._wait(delivery, later)
            except Exception:
                defects += 1
                await self._defect(delivery, final=defects > _DEFECTS_FORGIVEN)
            else:
                if delivery.state == "sending":
                    delivery.state = "sent"
                    await self._record(store_progress(delivery))
        if delivery.state == "sent":
            self._services.delivered(delivery)

    async def confirm(self, delivery: Delivery, ref: str | None, *, last: bool) -> None:
        delivery.done += 1
        delivery.refs = [*delivery.refs, ref]
        if last:
            delivery.state = "sent"
        await self._record(store_progress(delivery))

    async def _wait(self, delivery: Delivery, later: RetryLater) -> None:
        delivery.attempts += 1
        delivery.error = str(later)
        if isinstance(later, DeliveryUncertain):
            if delivery.draft is None or delivery.done:  # replacing the draft again changes nothing
                delivery.message = msgspec.structs.replace(delivery.message, possible_duplicate=True)
        else:
            delivery.state = "pending"  # its fate is known: it did not arrive
        await self._record(store_progress(delivery))
        await self._services.clock.sleep(self._delay(delivery.attempts, later.after))

    def _delay(self, attempts: int, asked: timedelta | None) -> float:
        jitter = 1 + self._services.random.random() / 4
        if asked is not None:
            return asked.total_seconds() + jitter - 1
        return min(_FIRST_DELAY_S * 2.0 ** min(attempts - 1, 16), _LONGEST_DELAY_S) * jitter

    async def _follow(self, delivery: Delivery, new: Address) -> None:
        """The place has another id: everything waits in the database until it has followed."""
        delivery.state = "pending"
        await self._record(store_progress(delivery))
        self._moved = True
        self._services.moved(self.address.place, new)

    async def _refuse(self, delivery: Delivery, reason: str) -> None:
        delivery.state = "refused"
        delivery.error = reason
        log.warning("delivery refused", extra={"facts": {"chat": str(self.address), "id": delivery.id, "reason": reason}})
        await self._record(store_progress(delivery))
        await self._services.refused(delivery, reason)

    async def _defect(self, delivery: Delivery, *, final: bool) -> None:
        error_id = self._services.ids()
        log.exception("delivery failed", extra={"facts": {"chat": str(self.address), "id": delivery.id, "error_id": error_id}})
        if final:
            await self._refuse(delivery, f"an error of this host, {error_id}")
        else:
            await self._wait(delivery, DeliveryUncertain(f"an error of this host, {error_id}"))

    async def _record(self, work: TransactionWork) -> bool:
        """What came of a sending and cannot be written down holds up nobody: at worst a restart sends it again, marked as a possible
        duplicate."""
        try:
            await self._services.database.write(work)
        except OperatorMustAct as error:
            log.error("delivery could not be recorded", extra={"facts": {"chat": str(self.address), "error": str(error)}})
            return False
        return True


class _Progress:
    """Implements ``DeliveryProgress``."""

    def __init__(self, lane: Lane, delivery: Delivery) -> None:
        self.done = delivery.done
        self.draft = delivery.draft
        self._lane = lane
        self._delivery = delivery

    async def confirm(self, ref: str | None, *, last: bool = False) -> None:
        self.done += 1
        await self._lane.confirm(self._delivery, ref, last=last)
