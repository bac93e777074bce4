"""A host in memory, for tests of what stands on ``JobDelivery``."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from features.contracts.chat import Address, Button, DueRun
from features.contracts.database import Migrations, Transaction
from features.contracts.jobs import RunFate
from features.contracts.sessions import TransactionWork

__all__ = ["HANDED_MIGRATIONS", "MemoryDelivery"]

HANDED_MIGRATIONS = Migrations(slice="handed", steps=(("CREATE TABLE handed (id TEXT PRIMARY KEY, job TEXT, text TEXT)",),))


class MemoryDelivery:
    """Implements ``JobDelivery``. ``begun`` are the runs that arrived, in order, each told to ``on_begin``; what was put is in the table
    ``handed``.

    ``at_work`` are chats in which something goes on, ``refused`` places whose jobs may not run, ``known_fates`` what ``fates`` answers.
    """

    def __init__(self, folder: Path) -> None:
        self.begun: list[DueRun] = []
        self.on_begin: Callable[[DueRun], None] = lambda run: None
        self.posted: list[tuple[Address, str, Sequence[Sequence[Button]]]] = []
        self.at_work: set[Address] = set()
        self.refused: dict[Address, str] = {}
        self.known_fates: dict[str, RunFate] = {}
        self.zones: dict[Address, str] = {}
        self._folder = folder

    def put(self, run: DueRun) -> TransactionWork:
        def work(transaction: Transaction) -> None:
            transaction.execute("INSERT INTO handed VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (run.id, run.job_id, run.text))

        return work

    def begin(self, run: DueRun) -> None:
        self.begun.append(run)
        self.on_begin(run)

    def drop(self, run_id: str) -> TransactionWork:
        def work(transaction: Transaction) -> None:
            transaction.execute("DELETE FROM handed WHERE id = ?", (run_id,))

        return work

    async def fates(self, run_ids: Sequence[str]) -> Mapping[str, RunFate]:
        return {run_id: self.known_fates[run_id] for run_id in run_ids if run_id in self.known_fates}

    def busy(self, address: Address) -> bool:
        return address in self.at_work

    def refusal(self, place: Address, *, by: str, group: bool) -> str | None:
        return self.refused.get(place)

    async def post(self, address: Address, text: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None:
        self.posted.append((address, text, buttons))

    async def zone(self, place: Address) -> str:
        return self.zones.get(place, "UTC")

    async def folder(self, place: Address) -> Path:
        folder = self._folder / f"{place.channel}-{place.chat.replace('/', '_')}"
        (folder / ".pumice").mkdir(parents=True, exist_ok=True)
        return folder

    async def own_folder(self, place: Address) -> Path:
        return await self.folder(place) / ".pumice"
