"""What the end of a run means for its job."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from features.contracts.chat import DueRun
from features.contracts.database import Transaction
from features.scheduler import tables
from features.scheduler.due_runs import notice, paused_notice
from features.scheduler.job import Job, JobRun, RunState
from features.scheduler.wording import one_line

__all__ = ["settle_run"]

_FAILURES_TO_PAUSE = 5


def settle_run(transaction: Transaction, run: JobRun, *, was: Sequence[RunState], notice_id: str, now: datetime) -> list[DueRun]:
    """Write the end of a run and what follows for its job; gives what its chat is to be told.

    Five failures in a row pause a job. One that has no further time is done, and so is a condition that came true and was to do so once.
    """
    if not tables.end_run(transaction, run, was=was):
        return []
    job = tables.find_job(transaction, run.job_id)
    if job is None:  # it was removed meanwhile
        return []
    failures = job.failures + 1 if run.state == "failed" else job.failures if run.state == "cut" else 0
    job = msgspec.structs.replace(job, failures=failures, last_run=run)
    told: list[DueRun] = []
    if _came_true(job, run):
        job = msgspec.structs.replace(job, state="done", reason="it happened", next_at=None)
    elif job.state == "active" and failures >= _FAILURES_TO_PAUSE and job.next_at is not None:
        job = msgspec.structs.replace(
            job, state="paused", reason=f"failed {failures} times in a row: {one_line(run.error, 200)}", next_at=None
        )  # fmt: skip
        told.append(paused_notice(job, run.error, notice_id, now))
    elif job.state == "active" and job.next_at is None:
        job = msgspec.structs.replace(job, state="done")
        if run.state == "failed" and run.delivery == "none":  # a script; nobody has heard of it yet
            told.append(notice(job, notice_id, f"Job {job.id} failed: {one_line(run.error, 300)}", now))
    tables.update_job(transaction, job)
    tables.prune(transaction, job)
    return told


def _came_true(job: Job, run: JobRun) -> bool:
    return bool(job.definition.condition) and job.definition.once and run.state == "done"
