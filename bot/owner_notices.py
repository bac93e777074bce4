"""What the host says on its own account to those who own it, and to whoever it has let in."""

from collections.abc import Mapping

from bot.access import Access
from bot.delivery import Outbox
from features.contracts.chat import Address, ChatChannel, OutboundMessage
from features.contracts.clock import Clock

__all__ = ["OwnerNotices"]

_AGAIN_AFTER_S = 3600.0


class OwnerNotices:
    """Writes into the private chats with the owners. A person's id is also that of the private chat with them."""

    def __init__(self, access: Access, outbox: Outbox, channels: Mapping[str, ChatChannel], clock: Clock) -> None:
        self._access = access
        self._outbox = outbox
        self._channels = channels
        self._clock = clock
        self._told: dict[Address, float] = {}

    async def tell(self, text: str) -> None:
        for address in await self._chats():
            await self._outbox.post(address, OutboundMessage(text=text))

    async def undeliverable(self, address: Address, reason: str) -> None:
        """Tell of a chat that takes nothing; once an hour, and not of an owner's own."""
        now = self._clock.monotonic()
        self._told = {told: at for told, at in self._told.items() if now - at < _AGAIN_AFTER_S}
        if address not in self._told and address not in await self._chats():
            self._told[address] = now
            await self.tell(f"I cannot deliver to {address}: {reason}")

    async def welcome(self, person: str) -> None:
        """Whoever waits for an owner's word hears it where they asked."""
        await self._outbox.post(Address.parse(person), OutboundMessage(text="You may talk to me now. Say what you need, or type /help."))

    async def _chats(self) -> list[Address]:
        owners = [Address.parse(member.id) for member in await self._access.members() if member.owner and member.kind == "user"]
        return [address for address in owners if address.channel in self._channels and address.channel not in ("web", "console")]
