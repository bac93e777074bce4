"""``.pumice/scheduler/jobs.json`` of a place: its jobs to read. The database is the truth; what is written here is never read back."""

import hashlib
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from features.scheduler.job import Job
from features.scheduler.wording import schedule_words

__all__ = ["jobs_document", "shown_job", "write_jobs_file"]

FOLDER, NAME = "scheduler", "jobs.json"
_NOTE = "Written by the host after each change, to be read. To change a job, ask in the chat or use 'pumice jobs'."
_MOST_READ = 10_000_000


def shown_job(job: Job) -> dict[str, Any]:
    """A job as jobs.json, the API and the command line show it; times are ISO 8601 with the offset of its zone."""
    definition = job.definition
    shown: dict[str, Any] = {
        "id": job.id,
        "chat": str(definition.address),
        "kind": definition.kind,
        "when": schedule_words(definition.schedule, job.zone),
        "zone": job.zone,
        "next_run_at": _iso(job.next_at, job.zone),
        "state": job.state,
    }
    optional = {
        "reason": job.reason,
        "prompt": definition.text,
        "script": definition.script,
        "condition": definition.condition,
        "isolated": definition.isolated,
        "quiet_hours": definition.quiet_hours,
        "ends_at": _iso(definition.ends_at, job.zone),
        "failures": job.failures,
    }
    shown |= {name: value for name, value in optional.items() if value}
    run = job.last_run
    shown["last_run"] = run and {
        "due_at": _iso(run.due_at, job.zone), "state": run.state, "delivery": run.delivery, "error": run.error,
        "ended_at": _iso(run.ended_at, job.zone),
    }  # fmt: skip
    shown["made_at"] = _iso(job.made_at, job.zone)
    return shown


def jobs_document(place: str, jobs: Sequence[Job]) -> bytes:
    """The file's bytes: the jobs, and a digest by which it is seen whether somebody changed them."""
    listed = [shown_job(job) for job in jobs]
    document = {"note": _NOTE, "place": place, "jobs": listed, "digest": _digest(place, listed)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def write_jobs_file(host_folder: Path, document: bytes) -> bool:
    """Put the file in one step, unless it says this already.

    Returns:
        whether somebody other than the host had changed what stood there.
    """
    folder = host_folder / FOLDER
    if folder.is_symlink():
        folder.unlink()  # it could lead anywhere
    folder.mkdir(mode=0o700, exist_ok=True)
    target, fresh = folder / NAME, folder / f"{NAME}.new"
    present = _present(target)
    if present == document:
        return False
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(document)
    fresh.replace(target)
    return present is not None and _is_foreign(present)


def _present(target: Path) -> bytes | None:
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:  # a symlink, or nothing that can be read: not ours
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MOST_READ)


def _is_foreign(present: bytes) -> bool:
    try:
        said = msgspec.json.decode(present)
        return bool(said["digest"] != _digest(said["place"], said["jobs"]))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError):
        return True


def _digest(place: str, listed: Any) -> str:
    return hashlib.sha256(msgspec.json.encode([place, listed])).hexdigest()


def _iso(moment: datetime | None, zone: str) -> str | None:
    return None if moment is None else moment.astimezone(ZoneInfo(zone)).isoformat(timespec="seconds")
