"""The scheduler of a host that does not run: jobs can be looked at and changed, and none becomes due."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.clock import SystemClock
from bot.config import Config
from bot.host_parts import default_settings, scheduler_options
from bot.ids import new_id
from bot.settings import SettingsStore
from features.contracts.chat import Address, Button, DueRun
from features.contracts.database import Database, Transaction
from features.contracts.jobs import RunFate
from features.contracts.sessions import TransactionWork
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.scheduler import JobScheduler
from workspaces import Workspaces

__all__ = ["resting_scheduler"]


def resting_scheduler(config: Config, database: Database) -> JobScheduler:
    redactor = SecretRedactor()
    policy = ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ=os.environ)
    return JobScheduler(
        database, _NoDelivery(config, database), ProcessRunner(policy, redactor), scheduler_options(config, sandboxed=False),
        clock=SystemClock(), ids=new_id,
    )  # fmt: skip


class _NoDelivery:
    """Implements ``JobDelivery`` without any chat."""

    def __init__(self, config: Config, database: Database) -> None:
        self._settings = SettingsStore(database, default_settings(config))
        self._workspaces = Workspaces(config.host.data_dir / "workspaces")

    def put(self, run: DueRun) -> TransactionWork:
        return _nothing

    def begin(self, run: DueRun) -> None:
        pass

    def drop(self, run_id: str) -> TransactionWork:
        return _nothing

    async def fates(self, run_ids: Sequence[str]) -> Mapping[str, RunFate]:
        return {}

    def busy(self, address: Address) -> bool:
        return False

    def refusal(self, place: Address, *, by: str, group: bool) -> str | None:
        return "no host is running"

    async def post(self, address: Address, text: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None:
        pass

    async def zone(self, place: Address) -> str:
        return (await self._settings.get(place)).time_zone

    async def folder(self, place: Address) -> Path:
        return await asyncio.to_thread(self._workspaces.folder, place.place)

    async def own_folder(self, place: Address) -> Path:
        return await asyncio.to_thread(self._workspaces.host_folder, place.place)


def _nothing(transaction: Transaction) -> None:
    pass
