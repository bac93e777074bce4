"""Inbox and outbox over a real database and a platform in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from bot.delivery import DELIVERY_MIGRATIONS, Inbox, Outbox, StoredMessage
from bot.delivery.delivery import Delivery
from bot.testing import LoopbackChannel, LoopbackChat
from features.contracts.chat import Address, InboundMessage
from features.contracts.database import Row
from features.contracts.testing import FakeClock, sequential_ids
from features.storage import Database

__all__ = ["EverybodyGate", "Rig", "eventually", "opened"]


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what happens on another thread."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - the database's thread sets no event here
            await asyncio.sleep(0.001)


class Verdict:
    def __init__(self, *, admitted: bool, owner: bool = False, reply: str | None = None, tell_owners: str | None = None) -> None:
        self.admitted = admitted
        self.owner = owner
        self.reply = reply
        self.tell_owners = tell_owners


class EverybodyGate:
    """Admits everybody but those named ``Mallory``."""

    async def judge(self, message: InboundMessage) -> Verdict:
        if message.sender.name == "Mallory":
            return Verdict(admitted=False, reply="I do not know you.", tell_owners="Mallory was here.")
        return Verdict(admitted=True, owner=message.sender.name == "Olga")


class Rig:
    def __init__(self, database: Database, ids: Callable[[], str]) -> None:
        self.clock = FakeClock()
        self.database = database
        self.channel = LoopbackChannel(clock=self.clock)
        self.handed: list[StoredMessage] = []
        self.refusals: list[tuple[str, str | None, str | None]] = []
        self.refused: list[tuple[Delivery, str]] = []
        self.delivered: list[Delivery] = []
        self.changed: list[Delivery] = []
        self.moved: list[tuple[Address, Address]] = []
        self.outbox = Outbox(
            database,
            {"loop": self.channel},
            clock=self.clock,
            ids=ids,
            random=Random(1),
            redact=lambda text: text.replace("hunter22", "[REDACTED]"),
            refused=self._refused,
            delivered=self.delivered.append,
            changed=self.changed.append,
            moved=lambda old, new: self.moved.append((old, new)),
            where=lambda address: address,
        )
        self.inbox = Inbox(
            database, EverybodyGate(), clock=self.clock, ids=ids, hand_over=self.handed.append, refused=self._say_refusal, moved=self._moved
        )

    async def _moved(self, old: Address, new: Address) -> None:
        self.moved.append((old, new))

    def chat(self, name: str = "1") -> LoopbackChat:
        return self.channel.chat(name)

    async def rows(self, sql: str) -> list[Row]:
        return await self.database.read(lambda t: t.fetch_all(sql))

    async def outbox_states(self) -> list[str]:
        return [row[0] for row in await self.rows("SELECT state FROM outbox ORDER BY position")]

    async def inbox_states(self) -> list[str]:
        return [row[0] for row in await self.rows("SELECT state FROM inbox ORDER BY position")]

    async def close(self) -> None:
        await self.outbox.close()
        await self.inbox.close()

    async def _refused(self, delivery: Delivery, reason: str) -> None:
        self.refused.append((delivery, reason))

    async def _say_refusal(self, message: InboundMessage, verdict: object) -> None:
        assert isinstance(verdict, Verdict)
        self.refusals.append((message.text, verdict.reply, verdict.tell_owners))


_ids = sequential_ids()


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Rig]:
    """A rig over the database in ``folder``; what is open at the end is cut, as a crash does."""
    async with Database(folder / "state.db", [DELIVERY_MIGRATIONS]) as database:
        rig = Rig(database, _ids)
        try:
            yield rig
        finally:
            await rig.close()
