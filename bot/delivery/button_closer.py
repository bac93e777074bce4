"""Taking the buttons off messages that were delivered, once nobody waits for a press."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from bot.delivery.delivery import COLUMNS, Delivery, from_row
from bot.delivery.schema import encode_outbound
from features.contracts.chat import Address, ChatChannel
from features.contracts.database import Database, Transaction

__all__ = ["ButtonCloser"]


class ButtonCloser:
    """
    Args:
        changed: told of a message that reads otherwise now.
    """

    def __init__(self, database: Database, channels: Mapping[str, ChatChannel], *, changed: Callable[[Delivery], None]) -> None:
        self._database = database
        self._channels = channels
        self._changed = changed
        self._awaited: dict[str, asyncio.Event] = {}

    def settled(self, delivery: Delivery) -> None:
        """A message is in its chat, or will never be."""
        if (awaited := self._awaited.get(delivery.id)) is not None:
            awaited.set()

    async def close(self, address: Address, delivery_id: str, ending: str) -> bool:
        """Wait until the message is out, then take its buttons off and put ``ending`` under its text.

        Returns:
            False if people do not see that: the platform cannot change what it has shown, or would not.
        """
        if address.channel not in self._channels:
            return True
        settled = self._awaited.setdefault(delivery_id, asyncio.Event())
        try:
            delivery = await self._database.read(lambda t: _find(t, delivery_id))
            if delivery is not None and delivery.state in ("pending", "sending"):
                await settled.wait()
                delivery = await self._database.read(lambda t: _find(t, delivery_id))
        finally:
            self._awaited.pop(delivery_id, None)
        if delivery is None or delivery.state != "sent":
            return True  # nobody sees it, or ever will
        if not delivery.message.text.endswith(ending):
            delivery = await self._rewrite(delivery, ending)
        ref = next((ref for ref in reversed(delivery.refs) if ref is not None), None)
        return await self._channels[address.channel].close_buttons(address, ref, delivery.message.text)

    async def _rewrite(self, delivery: Delivery, ending: str) -> Delivery:
        """First here: the log must not offer what is over, whatever the platform does."""
        message = msgspec.structs.replace(delivery.message, text=f"{delivery.message.text}\n\n{ending}", buttons=())
        values = (encode_outbound(message), delivery.id)
        await self._database.write(lambda t: t.execute("UPDATE outbox SET message = ? WHERE id = ?", values))
        delivery.message = message
        self._changed(delivery)
        return delivery


def _find(transaction: Transaction, delivery_id: str) -> Delivery | None:
    row = transaction.fetch_one(f"SELECT {COLUMNS} FROM outbox WHERE id = ?", (delivery_id,))  # noqa: S608
    return None if row is None else from_row(row)
