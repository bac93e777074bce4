"""Which chats have a heartbeat: those in which an owner talks to the agent alone."""

import logging
from collections.abc import Callable

from bot.config.host_sections import HeartbeatSection
from bot.delivery import StoredMessage
from bot.delivery.errands import Errands
from features.contracts.chat import Address
from features.scheduler import JobScheduler

__all__ = ["Heartbeats"]

log = logging.getLogger("pumice.jobs")


class Heartbeats:
    """Keeps the heartbeat of each such chat as the configuration wants it."""

    def __init__(self, scheduler: JobScheduler, section: HeartbeatSection, ids: Callable[[], str]) -> None:
        self._scheduler = scheduler
        self._section = section
        self._errands = Errands(log, ids)
        self._known: set[Address] = set()

    async def follow_configuration(self) -> None:
        """Change or take away the heartbeats that are there."""
        for address in await self._scheduler.heartbeats():
            await self._keep(address)
            self._known.add(address.place)

    def heard(self, stored: StoredMessage) -> None:
        """Somebody said something; the first time that it is an owner in a chat of their own, that chat gets its heartbeat."""
        message = stored.message
        place = message.address.place
        at_home = stored.owner and not message.group and message.sender.id.partition(":")[0] == place.channel
        if self._section.every_minutes and at_home and place not in self._known:
            self._known.add(place)
            self._errands.start(self._keep(message.address), name=f"heartbeat {place}")

    async def close(self) -> None:
        await self._errands.close()

    async def _keep(self, address: Address) -> None:
        await self._scheduler.heartbeat(address, every_minutes=self._section.every_minutes, check=self._section.check)
