"""Following a place that its platform has given another id, as when a Telegram group becomes a supergroup."""

import asyncio
import logging
from collections.abc import Sequence

from bot.conversations import Conversations
from bot.delivery import Outbox
from features.contracts.chat import Address
from features.contracts.clock import Clock
from features.contracts.database import Database, Migrations, Transaction
from features.contracts.places import PlaceFollower, moved_address
from workspaces import Workspaces

__all__ = ["PLACE_MOVE_MIGRATIONS", "PlaceMoves"]

PLACE_MOVE_MIGRATIONS = Migrations(
    slice="place_moves",
    steps=(("CREATE TABLE place_moves (old TEXT PRIMARY KEY, new TEXT NOT NULL, moved_at TEXT NOT NULL, done INTEGER NOT NULL)",),),
)

_log = logging.getLogger("pumice.places")


class PlaceMoves:
    """Brings everything of a place under its new address.

    ::

        noted --both places rest--> rows moved, in one transaction --> folder renamed --> done, and both places go on

    A move that was noted and not finished is finished by ``recover``, before anything is at work.
    """

    def __init__(self, database: Database, workspaces: Workspaces, clock: Clock) -> None:
        self._database = database
        self._workspaces = workspaces
        self._clock = clock
        self._followers: Sequence[PlaceFollower] = ()
        self._moved: dict[Address, Address] = {}
        self._moving = asyncio.Lock()

    def where(self, address: Address) -> Address:
        """An address as it reads by now."""
        new = self._moved.get(address.place)
        return address if new is None else moved_address(address, address.place, new)

    async def recover(self, followers: Sequence[PlaceFollower]) -> None:
        """Finish what an earlier process began.

        Args:
            followers: everybody who keeps something by place.
        """
        self._followers = tuple(followers)
        rows = await self._database.read(lambda t: t.fetch_all("SELECT old, new, done FROM place_moves ORDER BY moved_at"))
        for before, after, done in rows:
            old, new = Address.parse(before), Address.parse(after)
            self._remember(old, new)
            if not done:
                await self._carry(old, new)

    async def move(self, old: Address, new: Address, conversations: Conversations, outbox: Outbox, *, again: bool = False) -> None:
        """Follow a place; returns when everything is under the new address and at work there.

        Args:
            again: also if that was done before, for what was written to the old address since.
        """
        old, new = old.place, new.place
        async with self._moving:
            if old == new or self._moved.get(new) == old or (self._moved.get(old) == new and not again):
                return
            _log.info("a place has another id", extra={"facts": {"old": str(old), "new": str(new)}})
            await self._note(old, new)
            await conversations.rest((old, new))
            await outbox.rest((old, new))
            try:
                await self._carry(old, new)
            finally:
                await conversations.recover(await outbox.recover(new), new)

    async def _carry(self, old: Address, new: Address) -> None:
        works = [follower.move_place(old, new) for follower in self._followers]

        def work(transaction: Transaction) -> None:
            for each in works:
                each(transaction)

        await self._database.write(work)
        await asyncio.to_thread(self._workspaces.move, old, new)
        await self._database.write(lambda t: t.execute("UPDATE place_moves SET done = 1 WHERE old = ?", (str(old),)))
        self._remember(old, new)
        for follower in self._followers:
            follower.place_moved(old, new)

    async def _note(self, old: Address, new: Address) -> None:
        values = (str(old), str(new), self._clock.now().isoformat())
        sql = (
            "INSERT INTO place_moves (old, new, moved_at, done) VALUES (?, ?, ?, 0)"
            " ON CONFLICT (old) DO UPDATE SET new = excluded.new, moved_at = excluded.moved_at, done = 0"
        )
        await self._database.write(lambda t: t.execute(sql, values))

    def _remember(self, old: Address, new: Address) -> None:
        self._moved = {before: new if after == old else after for before, after in self._moved.items()} | {old: new}
