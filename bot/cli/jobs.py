"""``pumice jobs``."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from bot.cli.host_data import nothing_stored, open_database, running_client
from bot.cli.options import as_json, located, read_client_config
from bot.cli.table import print_json, print_table
from bot.config import Config
from features.contracts.errors import OperatorMustAct, UserMustAct

if TYPE_CHECKING:
    from features.scheduler import JobScheduler

__all__ = ["command"]

_Action = Literal["run", "pause", "resume", "remove"]


@click.group("jobs")
def command() -> None:
    """List and look after the scheduled jobs of all chats."""


@command.command("list")
@located
@as_json
def list_(config: Path | None, data_dir: Path | None, json: bool) -> None:
    """List the scheduled jobs of all chats."""
    jobs = asyncio.run(_list(read_client_config(config, data_dir)))
    if json:
        print_json(jobs)
        return
    rows = [
        (
            job["id"],
            job["chat"],
            job["when"],
            str(job["next_run_at"] or "")[:16].replace("T", " "),
            job["zone"],
            job["state"],
            job.get("condition") or job.get("prompt") or job.get("script") or "",
        )
        for job in jobs
    ]
    head = ("id", "chat", "when", "next", "zone", "state", "what")
    print_table(head, rows, empty="There are no jobs yet. /schedule in a chat makes one.")


@command.command("show")
@click.argument("id")
@located
@as_json
def show(id: str, config: Path | None, data_dir: Path | None, json: bool) -> None:
    """Show a job with its next and its last runs."""
    job = asyncio.run(_show(read_client_config(config, data_dir), id))
    if json:
        print_json(job)
        return
    for name, value in job.items():
        if name == "runs":
            for run in value:
                error = f" ({run['error']})" if run["error"] else ""
                click.echo(f"run: {run['due_at']} {run['state']}, delivery {run['delivery']}{error}")
        elif isinstance(value, list):
            click.echo(f"{name}: {', '.join(map(str, value))}")
        elif value is not None and not isinstance(value, dict):
            click.echo(f"{name}: {value}")


@command.command("run")
@click.argument("id")
@located
def run(id: str, config: Path | None, data_dir: Path | None) -> None:
    """Run a job now, beside its schedule."""
    _act(config, data_dir, id, "run")


@command.command("pause")
@click.argument("id")
@located
def pause(id: str, config: Path | None, data_dir: Path | None) -> None:
    """Let a job rest."""
    _act(config, data_dir, id, "pause")


@command.command("resume")
@click.argument("id")
@located
def resume(id: str, config: Path | None, data_dir: Path | None) -> None:
    """Let a job that rests run again."""
    _act(config, data_dir, id, "resume")


@command.command("remove")
@click.argument("id")
@located
def remove(id: str, config: Path | None, data_dir: Path | None) -> None:
    """Take a job away."""
    _act(config, data_dir, id, "remove")


def _act(config: Path | None, data_dir: Path | None, job_id: str, action: _Action) -> None:
    said = asyncio.run(_acted(read_client_config(config, data_dir), job_id, action))
    click.echo(said.replace("`", "").replace("**", "").splitlines()[0])


async def _list(config: Config) -> list[dict[str, Any]]:
    async with running_client(config) as host:
        if host is not None:
            listed: list[dict[str, Any]] = await host.get("/api/jobs")
            return listed
    if nothing_stored(config):
        return []
    async with _open_scheduler(config) as scheduler:
        return await scheduler.shown()


async def _show(config: Config, job_id: str) -> dict[str, Any]:
    async with running_client(config) as host:
        if host is not None:
            job: dict[str, Any] = await host.get(f"/api/jobs/{_checked(job_id)}")
            return job
    if nothing_stored(config):
        raise UserMustAct(f"there is no job {job_id!r}. 'pumice jobs list' lists them.")
    async with _open_scheduler(config) as scheduler:
        return await scheduler.shown_job(job_id)


async def _acted(config: Config, job_id: str, action: _Action) -> str:
    async with running_client(config) as host:
        if host is not None:
            path = f"/api/jobs/{_checked(job_id)}"
            if action == "remove":
                return str((await host.delete(path))["text"])
            return str((await host.post(f"{path}/{action}", {}))["text"])
    if action == "run":
        raise OperatorMustAct("no host is running, and a job runs in its host. Start it with 'pumice run'.")
    if nothing_stored(config):
        raise UserMustAct(f"there is no job {job_id!r}. 'pumice jobs list' lists them.")
    async with _open_scheduler(config) as scheduler:
        return await scheduler.commands.act(job_id, action)


def _checked(job_id: str) -> str:
    if not job_id.isalnum():
        raise UserMustAct(f"there is no job {job_id!r}. 'pumice jobs list' lists them.")
    return job_id


@asynccontextmanager
async def _open_scheduler(config: Config) -> "AsyncIterator[JobScheduler]":
    """The jobs of a data directory on which no host runs; nothing becomes due here."""
    async with open_database(config) as database:
        from bot.jobs.resting import resting_scheduler

        scheduler = resting_scheduler(config, database)
        try:
            yield scheduler
        finally:
            await scheduler.close()
