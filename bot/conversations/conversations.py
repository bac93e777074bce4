"""All conversations of the host."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any

from bot.conversations.conversation import Conversation
from bot.conversations.services import ConversationServices
from bot.delivery.delivery import Delivery
from bot.delivery.errands import within
from bot.delivery.inbox import StoredMessage, UnfinishedTurn
from bot.delivery.outbox import CutRun
from features.contracts.chat import Address

__all__ = ["Conversations"]

log = logging.getLogger("pumice.conversations")

_SWEEP_S = 30.0
_PARKING_S = 1.0


class Conversations:
    """One conversation per address, made when something is said there and dropped when it has been idle.

    Args:
        idle_evict_minutes: how long an idle one stays in memory; 0 keeps it.
    """

    def __init__(self, services: ConversationServices, *, idle_evict_minutes: int) -> None:
        self._services = services
        self._idle_s = idle_evict_minutes * 60.0
        self._open: dict[Address, Conversation] = {}
        self._recovered_through = 0
        self._resting: Collection[Address] = ()
        self._leaving = False

    def __len__(self) -> int:
        return len(self._open)

    def dispatch(self, stored: StoredMessage) -> None:
        """Hand on a message that is on the disk."""
        address = stored.message.address
        if not self._leaving and address.place not in self._resting:  # otherwise it stays in the inbox, and is taken up from there
            self.get(address).receive(stored)

    def get(self, address: Address) -> Conversation:
        conversation = self._open.get(address)
        if conversation is None:
            conversation = self._open[address] = Conversation(address, self._services, recovered_through=self._recovered_through)
        return conversation

    def find(self, address: Address) -> Conversation | None:
        """The conversation of an address, if it is in memory."""
        return self._open.get(address)

    async def revoke(self, person_or_place: str) -> None:
        """Stop at once what goes on for a person, or in a place, that is not admitted any more."""
        await self._each(lambda conversation: conversation.revoke(person_or_place))

    def delivery_refused(self, delivery: Delivery, reason: str) -> None:
        self.get(delivery.address).delivery_refused(delivery, reason)

    async def rest(self, places: Collection[Address]) -> None:
        """Let nothing be at work in these places until ``recover``; what goes on there is parked."""
        self._resting = places
        there = [address for address in self._open if address.place in places]
        resting = [self._open.pop(address) for address in there]
        await within(self._services.clock, _PARKING_S, _all(conversation.park() for conversation in resting))
        await _all(conversation.close() for conversation in resting)

    async def recover(self, cut: Mapping[Address, CutRun], place: Address | None = None) -> None:
        """Take up what an earlier process accepted, for the channels that are at work here: first what was begun, then what waits.

        Args:
            cut: the runs that the outbox found cut.
            place: the one place to take up, after it rested.
        """
        self._resting = ()
        if self._leaving:  # a place that moved while the host stops is taken up at the next start
            return
        unfinished = await self._services.inbox.unfinished()
        waiting, self._recovered_through = await self._services.inbox.waiting_addresses()
        if place is not None:
            unfinished = [turn for turn in unfinished if turn.address.place == place]
            waiting = [address for address in waiting if address.place == place]
        backlog = set(waiting)
        begun: dict[Address, list[UnfinishedTurn]] = {}
        for turn in unfinished:
            begun.setdefault(turn.address, []).append(turn)
        for address in dict.fromkeys((*begun, *waiting)):
            if address.channel not in self._services.channels:
                continue
            conversation = self._open[address] = Conversation(
                address, self._services, backlog=address in backlog, recovered_through=self._recovered_through
            )
            for turn in begun.get(address, ()):
                conversation.take_up(turn, cut.get(address))
            conversation.take_up()
        for address, run in cut.items():
            if address not in begun:
                await self._services.outbox.forget(run)
        if begun or waiting:
            log.info("taken up again", extra={"facts": {"begun": len(begun), "waiting": len(waiting)}})

    async def sweep(self) -> None:
        """Drop what has been idle long enough, until cancelled."""
        while True:
            await self._services.clock.sleep(_SWEEP_S)
            now = self._services.clock.monotonic()
            for address, conversation in list(self._open.items()):
                if self._idle_s and conversation.idle and now - conversation.last_used >= self._idle_s:
                    del self._open[address]  # first, so that a message that comes meanwhile finds a fresh one
                    await conversation.close("evict")

    def leave(self) -> None:
        """Begin nothing more."""
        self._leaving = True
        self._services.questions.leaving = True
        for conversation in self._open.values():
            conversation.leave()

    async def settle(self, seconds: float) -> None:
        """Let runs that are going on end by themselves for so long; then park them, so that the next start goes on with them."""
        if not await within(self._services.clock, seconds, self._each(Conversation.settled)):
            await within(self._services.clock, _PARKING_S, self._each(Conversation.park))

    async def close(self) -> None:
        self.leave()
        await self._each(lambda conversation: conversation.close())
        self._open.clear()

    async def _each(self, what: Callable[[Conversation], Coroutine[Any, Any, None]]) -> None:
        await _all(what(conversation) for conversation in self._open.values())


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*work)
