"""The host's end of the scheduler."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bot.access import Access
from bot.conversations import Conversations
from bot.delivery import Inbox, Outbox, StoredMessage
from bot.delivery.inbox import answered
from bot.jobs.isolated_runs import IsolatedRuns
from bot.settings import SettingsStore
from features.contracts.chat import Address, Button, ChatChannel, DueRun, OutboundMessage
from features.contracts.database import Database
from features.contracts.jobs import RunFate
from features.contracts.sessions import TransactionWork
from workspaces import Workspaces

__all__ = ["JobDesk"]

log = logging.getLogger("pumice.jobs")


class JobDesk:
    """Implements ``JobDelivery``.

    Args:
        conversations, isolated: where runs go; asked for when they do, since those are made later.
    """

    def __init__(
        self,
        *,
        database: Database,
        inbox: Inbox,
        outbox: Outbox,
        settings: SettingsStore,
        workspaces: Workspaces,
        access: Access,
        channels: Mapping[str, ChatChannel],
        conversations: Callable[[], Conversations],
        isolated: Callable[[], IsolatedRuns],
    ) -> None:
        self._database = database
        self._inbox = inbox
        self._outbox = outbox
        self._settings = settings
        self._workspaces = workspaces
        self._access = access
        self._channels = channels
        self._conversations = conversations
        self._isolated = isolated
        self._put: dict[str, StoredMessage] = {}

    def put(self, run: DueRun) -> TransactionWork:
        def stored(message: StoredMessage) -> None:
            self._put[message.id] = message

        return self._inbox.put(run, stored)

    def begin(self, run: DueRun) -> None:
        stored = self._put.pop(run.id, None)
        if stored is None or run.address.channel not in self._channels:  # it waits in the inbox until its channel is back
            return
        if run.isolated:
            self._isolated().begin(stored)
        else:
            self._conversations().dispatch(stored)

    async def wake(self, run: DueRun) -> bool:
        """Put a run that is nobody's job and begin it; False for one that was taken before."""
        await self._database.write(self.put(run))
        new = run.id in self._put
        self.begin(run)
        return new

    async def waiting(self, address: Address) -> int:
        """How many messages wait in a chat."""
        return await self._inbox.count_waiting(address)

    def drop(self, run_id: str) -> TransactionWork:
        return lambda transaction: answered((run_id,), transaction)

    async def fates(self, run_ids: Sequence[str]) -> Mapping[str, RunFate]:
        if not run_ids:
            return {}
        found: dict[str, RunFate] = {}
        for run_id, (state, joined) in (await self._inbox.states(run_ids)).items():
            if state == "waiting":
                found[run_id] = "waiting"
            elif state == "consumed":
                found[run_id] = "waiting" if joined else "begun"
            else:
                found[run_id] = "done" if await self._has_answer(run_id) else "silent"
        return found

    async def _has_answer(self, run_id: str) -> bool:
        sql = "SELECT 1 FROM outbox WHERE id > ? AND answers LIKE ? LIMIT 1"
        return await self._database.read(lambda t: t.fetch_one(sql, (run_id, f'%"{run_id}"%'))) is not None

    def busy(self, address: Address) -> bool:
        conversation = self._conversations().find(address)
        return conversation is not None and conversation.running

    def refusal(self, place: Address, *, by: str, group: bool) -> str | None:
        if place.channel not in self._channels:
            return f"this host has no {place.channel} channel at work"
        if by and not self._access.admits(by, place, group):
            return "whoever made this job may not talk here any more"
        return None

    async def post(self, address: Address, text: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None:
        await self._outbox.post(address, OutboundMessage(text=text, buttons=tuple(tuple(row) for row in buttons)))

    async def zone(self, place: Address) -> str:
        return (await self._settings.get(place)).time_zone

    async def folder(self, place: Address) -> Path:
        return await asyncio.to_thread(self._workspaces.folder, place.place)

    async def own_folder(self, place: Address) -> Path:
        return await asyncio.to_thread(self._workspaces.host_folder, place.place)
