"""Scheduled work: what the scheduler asks of its host, and what others may ask of the scheduler."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from features.contracts.chat import Address, Button, DueRun
from features.contracts.sessions import TransactionWork

__all__ = ["JobDelivery", "JobOrigin", "Reminders", "RunEnd", "RunFate"]

RunEnd = Literal["done", "silent", "failed", "stopped"]
"""How a run ended: answered; with nothing to say; not at all; stopped by a person."""

RunFate = Literal["waiting", "begun", "done", "silent", "gone"]
"""What became of a run that was handed over before the host ended; ``gone`` is one that it never heard of."""


class JobOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants a job. ``by`` is the person's id; ``depth`` is 0 for a person's own word and rises with each job that makes another."""

    by: str = ""
    owner: bool = False
    group: bool = False
    depth: int = 0


class JobDelivery(Protocol):
    """Contract. The host implements it.

    - ``put`` gives SQL that hands a run over; it joins the transaction in which the run is claimed, so that both happen or neither does.
      Putting the same run again changes nothing. ``begin`` is called once after that commit.
    - A run of a chat waits for what is going on there. Its end is told to ``JobScheduler.run_ended``, and whether the platform took the
      answer to ``JobScheduler.answer_delivered``.
    - ``fates`` is asked once at the start, before the host takes up what it left unfinished. A run that had begun is ``begun``, unless the
      host takes it up again, because somebody joined it; then it is ``waiting``. ``drop`` gives SQL by which the chat gives up a run.
    - ``busy`` says whether something goes on in a chat; a run that is handed over then takes nothing of the concurrency.
    - ``refusal`` says why a job may not run now, such as that whoever made it is not admitted any more; None where it may.
    - ``post`` delivers a text into a chat; it is on the disk when this returns.
    - ``folder`` is the workspace of a place, ``own_folder`` the one in it that the host alone writes to; both are there.
    """

    def put(self, run: DueRun) -> TransactionWork: ...

    def begin(self, run: DueRun) -> None: ...

    def drop(self, run_id: str) -> TransactionWork: ...

    async def fates(self, run_ids: Sequence[str]) -> Mapping[str, RunFate]: ...

    def busy(self, address: Address) -> bool: ...

    def refusal(self, place: Address, *, by: str, group: bool) -> str | None: ...

    async def post(self, address: Address, text: str, *, buttons: Sequence[Sequence[Button]] = ()) -> None: ...

    async def zone(self, place: Address) -> str: ...

    async def folder(self, place: Address) -> Path: ...

    async def own_folder(self, place: Address) -> Path: ...


class Reminders(Protocol):
    """What other features have done at a time; ``JobScheduler`` implements it.

    - ``remind`` makes the one job ``key`` of a place, or moves it; with ``prompt`` the agent is asked, else the text is delivered.
    - ``forget`` takes it away; one that is not there is False.
    - UserMustAct for a time that has passed and for a place with too many jobs.
    """

    async def remind(self, address: Address, key: str, *, at: datetime, text: str, prompt: bool = False, owner: bool = False) -> None: ...

    async def forget(self, place: Address, key: str) -> bool: ...
