"""The channels at work: each is run again after its own defects, and shows the commands that there are."""

import logging
from collections.abc import Callable, Mapping

from bot.command_menu import CommandMenu
from bot.delivery.errands import Errands
from features.contracts.chat import ChatChannel, ChatCommand, InboundSink
from features.contracts.clock import Clock
from features.skills import SkillCatalog

__all__ = ["Listening"]

log = logging.getLogger("pumice.host")

_AGAIN_AFTER_S = 5.0


class Listening:
    """Owns a task per channel from ``start`` to ``close``."""

    def __init__(
        self,
        channels: Mapping[str, ChatChannel],
        inbox: InboundSink,
        menu: CommandMenu,
        skills: SkillCatalog,
        *,
        clock: Clock,
        ids: Callable[[], str],
    ) -> None:
        self.skill_commands: list[ChatCommand] = []
        self._channels = channels
        self._inbox = inbox
        self._menu = menu
        self._skills = skills
        self._clock = clock
        self._ids = ids
        self._tasks = Errands(log, ids)

    def start(self) -> None:
        for channel in self._channels.values():
            self._tasks.start(self._listen(channel), name=f"channel {channel.name}")

    def announce_again(self) -> None:
        """Show the commands anew, because there are more."""
        for channel in self._channels.values():
            self._tasks.start(self._announce(channel), name=f"commands {channel.name}")

    async def close(self) -> None:
        await self._tasks.close()

    async def _listen(self, channel: ChatChannel) -> None:
        """A channel survives every fault of its platform; this is for its own defects."""
        self._tasks.start(self._announce(channel), name=f"commands {channel.name}")
        while True:
            try:
                await channel.run(self._inbox)
            except Exception:
                error_id = self._ids()
                log.exception("channel broke", extra={"facts": {"channel": channel.name, "error_id": error_id}})
            await self._clock.sleep(_AGAIN_AFTER_S)

    async def _announce(self, channel: ChatChannel) -> None:
        self.skill_commands = await self._skills.menu()
        await channel.announce_commands([*self._menu.all(), *self.skill_commands])
