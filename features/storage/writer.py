"""The one writer: callers queue up, and whatever waits is carried out together."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from features.storage.connection import ThreadConnection, wait_out
from features.storage.faults import closed, raise_translated, translated
from features.storage.transaction import Outcome, Work, carry_out

__all__ = ["Writer"]

log = logging.getLogger("pumice.storage")

_MAX_WAITING = 1000


class _Job(NamedTuple):
    work: Work
    outcome: asyncio.Future[Outcome]


class Writer:
    """Group commit over one connection, which it owns.

    At most 1000 works wait; further callers are held back, in their order. A caller that is cancelled while its work waits takes the work
    with it; once a batch has begun, its works are carried out.
    """

    def __init__(self, connection: ThreadConnection, path: Path) -> None:
        self.commits = 0
        self._connection = connection
        self._path = path
        self._slots = asyncio.Semaphore(_MAX_WAITING)
        self._waiting: deque[_Job] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._failing = False
        self._task = asyncio.create_task(self._serve(), name="database writer")

    async def write(self, work: Work) -> Any:
        async with self._slots:
            if self._closing or self._task.done():
                raise closed()
            job = _Job(work, asyncio.get_running_loop().create_future())
            self._waiting.append(job)
            self._wake.set()
            value, error = await job.outcome
        if error is not None:
            raise_translated(error, self._path)
        return value

    async def close(self) -> None:
        """Carry out what waits, then close the connection; also when cancelled."""
        self._closing = True
        self._wake.set()
        try:
            await wait_out(self._task)
        finally:
            await self._connection.shut()

    async def _serve(self) -> None:
        try:
            while self._waiting or not self._closing:
                await self._wake.wait()
                self._wake.clear()
                batch = [job for job in self._waiting if not job.outcome.done()]
                self._waiting.clear()
                if batch:
                    await self._carry_out(batch)
        finally:
            _settle(self._waiting, [Outcome(None, closed())] * len(self._waiting))

    async def _carry_out(self, batch: list[_Job]) -> None:
        outcomes = [Outcome(None, closed())] * len(batch)
        try:
            outcomes, commits = await self._connection.call(partial(carry_out, [job.work for job in batch]))
            self.commits += commits
            self._note_health(outcomes)
        except Exception as defect:
            # Each caller gets it and reports it; the writer lives on for the next batch.
            outcomes = [Outcome(None, defect)] * len(batch)
        finally:
            _settle(batch, outcomes)

    def _note_health(self, outcomes: list[Outcome]) -> None:
        """Say once that writing fails and once that it works again."""
        fault = next((found for _, error in outcomes if error is not None and (found := translated(error, self._path))), None)
        if fault is not None and not self._failing:
            self._failing = True
            log.error("database writing failed", extra={"facts": {"path": str(self._path), "error": str(fault)}})
        elif self._failing and any(error is None for _, error in outcomes):
            self._failing = False
            log.info("database writing again", extra={"facts": {"path": str(self._path)}})


def _settle(jobs: Iterable[_Job], outcomes: list[Outcome]) -> None:
    for job, outcome in zip(jobs, outcomes, strict=True):
        if not job.outcome.done():
            job.outcome.set_result(outcome)
