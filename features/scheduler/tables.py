"""The tables of jobs and runs, and the SQL on them. Times are Unix milliseconds."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from features.contracts.chat import Address
from features.contracts.database import Migrations, Row, Transaction, Value
from features.contracts.places import moved_address
from features.scheduler.job import Job, JobDefinition, JobRun, RunState

__all__ = [
    "SCHEDULER_MIGRATIONS",
    "claim",
    "count_live",
    "delete_job",
    "due_jobs",
    "end_run",
    "find_by_key",
    "find_job",
    "insert_job",
    "insert_run",
    "job_from",
    "jobs_of",
    "live_places",
    "move_jobs",
    "next_wake",
    "open_runs",
    "prune",
    "runs_of",
    "undelivered_runs",
    "update_job",
]

_JOBS = """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY, place TEXT NOT NULL, address TEXT NOT NULL, key TEXT, definition TEXT NOT NULL, zone TEXT NOT NULL,
        state TEXT NOT NULL, reason TEXT NOT NULL, next_at BIGINT, failures INTEGER NOT NULL, made_at BIGINT NOT NULL, last_run TEXT
    )
"""
_RUNS = """
    CREATE TABLE job_runs (
        id TEXT PRIMARY KEY, job_id TEXT NOT NULL, due_at BIGINT NOT NULL, instance TEXT NOT NULL, state TEXT NOT NULL,
        delivery TEXT NOT NULL, error TEXT NOT NULL, ended_at BIGINT, UNIQUE (job_id, due_at)
    )
"""

SCHEDULER_MIGRATIONS = Migrations(
    slice="scheduler",
    steps=(
        (
            _JOBS,
            "CREATE INDEX jobs_due ON jobs (next_at, id) WHERE state = 'active' AND next_at IS NOT NULL",
            "CREATE INDEX jobs_place ON jobs (place, state)",
            "CREATE UNIQUE INDEX jobs_key ON jobs (place, key) WHERE key IS NOT NULL",
            _RUNS,
            "CREATE INDEX job_runs_open ON job_runs (instance, state) WHERE state IN ('running', 'handed')",
            "CREATE INDEX job_runs_delivery ON job_runs (delivery) WHERE delivery = 'handed'",
            "CREATE TABLE job_numbers (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
        ),
    ),
)

_COLUMNS = "id, definition, zone, state, reason, next_at, failures, made_at, last_run"
_RUN_COLUMNS = "id, job_id, due_at, state, delivery, error, ended_at"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_KEPT_RUNS = 20
_MOST_MOVED = 20_000
_KEPT_DONE_JOBS = 20
_definitions = msgspec.json.Decoder(JobDefinition)
_last_runs = msgspec.json.Decoder(JobRun)


def insert_job(transaction: Transaction, definition: JobDefinition, *, zone: str, next_at: datetime | None, now: datetime) -> Job:
    """Put a new job under the next free number; a number never comes again."""
    row = transaction.fetch_one(
        "INSERT INTO job_numbers (name, value) VALUES ('job', 1)"
        " ON CONFLICT (name) DO UPDATE SET value = job_numbers.value + 1 RETURNING value"
    )
    assert row is not None
    job = Job(id=str(row[0]), definition=definition, zone=zone, state="active", made_at=now, next_at=next_at)
    transaction.execute(
        "INSERT INTO jobs (id, place, address, key, definition, zone, state, reason, next_at, failures, made_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            job.id, str(definition.place), str(definition.address), definition.key, msgspec.json.encode(definition).decode(), zone,
            job.state, job.reason, _ms(next_at), 0, _ms(now),
        ),
    )  # fmt: skip
    return job


def update_job(transaction: Transaction, job: Job) -> None:
    """Write a job as it is now."""
    definition = job.definition
    transaction.execute(
        "UPDATE jobs SET place = ?, address = ?, definition = ?, zone = ?, state = ?, reason = ?, next_at = ?, failures = ?, last_run = ?"
        " WHERE id = ?",
        (
            str(definition.place), str(definition.address), msgspec.json.encode(definition).decode(), job.zone, job.state, job.reason,
            _ms(job.next_at), job.failures, msgspec.json.encode(job.last_run).decode() if job.last_run else None, job.id,
        ),
    )  # fmt: skip


def move_jobs(transaction: Transaction, old: Address, new: Address) -> None:
    """Bring the jobs of a place under its new address. Of two that another feature calls the same, that of ``old`` stays."""
    for job in jobs_of(transaction, str(old.place), limit=_MOST_MOVED):
        definition = job.definition
        if definition.key is not None and (other := find_by_key(transaction, str(new.place), definition.key)) is not None:
            delete_job(transaction, other.id)
        moved = msgspec.structs.replace(definition, address=moved_address(definition.address, old, new))
        update_job(transaction, msgspec.structs.replace(job, definition=moved))


def delete_job(transaction: Transaction, job_id: str) -> bool:
    """Take a job away. Runs that are open stay, so that their end finds them; the others go with it."""
    transaction.execute("DELETE FROM job_runs WHERE job_id = ? AND state NOT IN ('running', 'handed')", (job_id,))
    return bool(transaction.execute("DELETE FROM jobs WHERE id = ?", (job_id,)))


def find_job(transaction: Transaction, job_id: str) -> Job | None:
    row = transaction.fetch_one(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job_id,))  # noqa: S608
    return None if row is None else _job(row)


def find_by_key(transaction: Transaction, place: str, key: str) -> Job | None:
    row = transaction.fetch_one(f"SELECT {_COLUMNS} FROM jobs WHERE place = ? AND key = ?", (place, key))  # noqa: S608
    return None if row is None else _job(row)


def jobs_of(transaction: Transaction, place: str | None, *, limit: int) -> list[Job]:
    """The jobs of a place, or of all, in the order they were made."""
    where, parameters = ("", ()) if place is None else (" WHERE place = ?", (place,))
    sql = f"SELECT {_COLUMNS} FROM jobs{where} ORDER BY made_at, length(id), id LIMIT ?"  # noqa: S608
    return [_job(row) for row in transaction.fetch_all(sql, (*parameters, limit))]


def count_live(transaction: Transaction, place: str) -> int:
    row = transaction.fetch_one("SELECT count(*) FROM jobs WHERE place = ? AND state <> 'done'", (place,))
    assert row is not None
    return int(row[0])


def live_places(transaction: Transaction, state: str | None = None) -> list[str]:
    """Where there are jobs, or jobs in a state."""
    where, parameters = ("", ()) if state is None else (" WHERE state = ?", (state,))
    return [row[0] for row in transaction.fetch_all(f"SELECT DISTINCT place FROM jobs{where}", parameters)]  # noqa: S608


def due_jobs(transaction: Transaction, now: datetime, *, besides: Sequence[str], limit: int) -> list[Row]:
    """Jobs that are due, the longest waiting first, without those that answer to the addresses ``besides``; as rows for ``claim``.

    At most one of an address: prompts of one chat start one after another.
    """
    sql = (
        f"SELECT {_COLUMNS}, address FROM jobs WHERE state = 'active' AND next_at IS NOT NULL AND next_at <= ?"  # noqa: S608
        f" AND address NOT IN ({', '.join('?' * len(besides))}) ORDER BY next_at, id LIMIT ?"
    )
    found: dict[str, Row] = {}
    for row in transaction.fetch_all(sql, (_ms(now), *besides, limit)):
        found.setdefault(row[-1], row[:-1])
    return list(found.values())


def next_wake(transaction: Transaction, now: datetime) -> datetime | None:
    """When the next job becomes due that is not yet."""
    row = transaction.fetch_one("SELECT min(next_at) FROM jobs WHERE state = 'active' AND next_at IS NOT NULL AND next_at > ?", (_ms(now),))
    return None if row is None else _time(row[0])


def claim(transaction: Transaction, job: Job, following: datetime | None) -> bool:
    """Move a job on from the time that it is due at; False if somebody else has, or if it was changed meanwhile."""
    return bool(
        transaction.execute(
            "UPDATE jobs SET next_at = ? WHERE id = ? AND state = 'active' AND next_at = ?", (_ms(following), job.id, _ms(job.next_at))
        )
    )


def insert_run(transaction: Transaction, run: JobRun, instance: str) -> bool:
    """Put a run; False if the job has had one for this time, ever."""
    values: tuple[Value, ...] = (
        run.id, run.job_id, _ms(run.due_at), instance, run.state, run.delivery, run.error, _ms(run.ended_at)
    )  # fmt: skip
    return bool(
        transaction.execute(
            "INSERT INTO job_runs (id, job_id, due_at, instance, state, delivery, error, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            values,
        )
    )


def end_run(transaction: Transaction, run: JobRun, *, was: Sequence[RunState]) -> bool:
    """Write what became of a run; False if that was written before."""
    values: tuple[Value, ...] = (run.state, run.delivery, run.error, _ms(run.ended_at), run.id, *was)
    return bool(
        transaction.execute(
            "UPDATE job_runs SET state = ?, delivery = ?, error = ?, ended_at = ?"  # noqa: S608
            f" WHERE id = ? AND state IN ({', '.join('?' * len(was))})",
            values,
        )
    )


def open_runs(transaction: Transaction, instance: str) -> list[JobRun]:
    """The runs that this instance began and did not end, in the order they were due."""
    sql = f"SELECT {_RUN_COLUMNS} FROM job_runs WHERE instance = ? AND state IN ('running', 'handed') ORDER BY due_at"  # noqa: S608
    return [_run(row) for row in transaction.fetch_all(sql, (instance,))]


def undelivered_runs(transaction: Transaction) -> list[JobRun]:
    """The runs whose answers are on their way."""
    sql = f"SELECT {_RUN_COLUMNS} FROM job_runs WHERE delivery = 'handed'"  # noqa: S608
    return [_run(row) for row in transaction.fetch_all(sql)]


def runs_of(transaction: Transaction, job_id: str, *, limit: int) -> list[JobRun]:
    """The runs of a job, the latest first."""
    sql = f"SELECT {_RUN_COLUMNS} FROM job_runs WHERE job_id = ? ORDER BY due_at DESC LIMIT ?"  # noqa: S608
    return [_run(row) for row in transaction.fetch_all(sql, (job_id, limit))]


def prune(transaction: Transaction, job: Job) -> None:
    """Keep what is worth knowing: a job's last runs, and the last jobs of a place that are done."""
    transaction.execute(
        "DELETE FROM job_runs WHERE job_id = ? AND state NOT IN ('running', 'handed') AND due_at <"
        " (SELECT due_at FROM job_runs WHERE job_id = ? ORDER BY due_at DESC LIMIT 1 OFFSET ?)",
        (job.id, job.id, _KEPT_RUNS - 1),
    )
    if job.state == "done":
        old = transaction.fetch_all(
            "SELECT id FROM jobs WHERE place = ? AND state = 'done' ORDER BY made_at DESC, length(id) DESC, id DESC LIMIT 100 OFFSET ?",
            (str(job.definition.place), _KEPT_DONE_JOBS),
        )
        for row in old:
            delete_job(transaction, row[0])


def _job(row: Row) -> Job:
    job_id, definition, zone, state, reason, next_at, failures, made_at, last_run = row
    made = _time(made_at)
    assert made is not None
    return Job(
        id=job_id, definition=_definitions.decode(definition), zone=zone, state=state, reason=reason, next_at=_time(next_at),
        failures=failures, made_at=made, last_run=None if last_run is None else _last_runs.decode(last_run),
    )  # fmt: skip


def _run(row: Row) -> JobRun:
    run_id, job_id, due_at, state, delivery, error, ended_at = row
    due = _time(due_at)
    assert due is not None
    return JobRun(id=run_id, job_id=job_id, due_at=due, state=state, delivery=delivery, error=error, ended_at=_time(ended_at))


def job_from(row: Row) -> Job:
    """The job that a row of ``due_jobs`` holds."""
    return _job(row)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MS  # exact, unlike a float


def _time(milliseconds: Any) -> datetime | None:
    return None if milliseconds is None else _EPOCH + milliseconds * _MS
