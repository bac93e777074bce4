"""All looks, in the order in which one would mend things."""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

from bot.config import Config, ConfigurationError, load_config
from bot.doctor.extensions import examine_extensions, examine_hooks, examine_own_extensions
from bot.doctor.finding import Finding, good, warning, wrong
from bot.doctor.machine import examine_machine
from bot.doctor.slack import examine_slack
from bot.doctor.telegram import examine_telegram
from bot.ids import new_id
from bot.lock import DataDirectoryLock, running_host
from bot.sandbox import sandbox_problem
from features.contracts.clock import Clock
from features.contracts.errors import OperatorMustAct

__all__ = ["examine"]


async def examine(path: Path | None, environ: Mapping[str, str], cwd: Path, clock: Clock, *, data_dir: Path | None = None) -> list[Finding]:
    """Everything that can be seen from here; with a bad configuration, that alone.

    Args:
        path: the configuration file that was asked for.
        data_dir: looked at instead of the configured one.
    """
    try:
        config = load_config(path, environ, cwd)
    except ConfigurationError as error:
        what, _, fix = str(error).partition(". ")
        return [wrong("configuration", what, fix.removesuffix("."))]
    if data_dir is not None:
        config = config.with_data_dir(data_dir)
    return [
        *_configuration(config),
        *examine_machine(config, clock),
        *await _sandbox_and_data(config, clock),
        *await examine_extensions(config),
        *examine_hooks(config),
        *[finding async for finding in _providers(config, clock)],
        *await examine_telegram(config.channels.telegram, config.access, clock),
        *await examine_slack(config.channels.slack, config.http.public_url),
    ]


def _configuration(config: Config) -> Iterator[Finding]:
    yield good("configuration", str(config.source) if config.source else "no file; the defaults hold")
    for told in config.warnings:
        what, _, fix = told.rpartition(". ") if told.endswith(".") else told.partition(". ")
        yield warning("configuration", what, fix.removesuffix("."))
    access = config.access
    if access.mode == "allowlist" and not (access.owners or access.allow or access.groups):
        yield warning("access", "access.mode is 'allowlist' and the lists are empty: nobody may talk", "Fill access.owners")


async def _sandbox_and_data(config: Config, clock: Clock) -> list[Finding]:
    problem = await sandbox_problem(config)
    finding, trusted = await _database(config, clock)
    return [_sandbox(config, problem), finding, *await examine_own_extensions(config, trusted, sandboxed=problem is None)]


def _sandbox(config: Config, problem: str | None) -> Finding:
    if problem is None:
        return good("sandbox", "bubblewrap keeps what agents start to the chat's own folder")
    what = f"{problem}, so bash is for owners only"
    fix = "Mend that, or make owners only of people whom you would give a shell on this machine"
    return wrong("sandbox", problem, fix) if config.processes.sandbox == "bubblewrap" else warning("sandbox", what, fix)


async def _database(config: Config, clock: Clock) -> tuple[Finding, frozenset[str] | None]:
    """With the contents of extensions that are trusted in some chat, where they can be seen."""
    path = config.database_path
    if not path.exists():
        return good("database", f"{path} is made at the first start"), frozenset()
    if running_host(config.host.data_dir) is not None:
        return good("database", "in use by the running host, which looked at it when it started"), None
    from bot.migrations import all_migrations
    from features.extensions import ExtensionChoices
    from features.storage import Database

    try:
        with DataDirectoryLock(config.host.data_dir):
            async with Database(path, all_migrations()) as database:
                problems = await database.check()
                trusted = await ExtensionChoices(database, clock).trusted_anywhere()
    except OperatorMustAct as error:
        what, _, fix = str(error).partition(". ")
        return wrong("database", what, fix.removesuffix(".")), None
    if problems:
        fix = "Stop the host, keep a copy of the file, and restore a backup"
        return wrong("database", f"{path} is damaged: {problems[0]}", fix), None
    return good("database", f"{path} is sound"), frozenset(digest for _, digest in trusted)


async def _providers(config: Config, clock: Clock) -> AsyncIterator[Finding]:
    from bot.host_parts import make_models

    models = make_models(config, clock=clock, ids=new_id)
    for name, provider in config.providers.items():
        key = "with a key" if provider.api_key else "without a key"
        about = f"{name}: {provider.kind}, {key}" + (f", at {provider.base_url}" if provider.base_url else "")
        problem = await models.problem(name)
        yield good("models", about) if problem is None else wrong("models", f"{about}: {problem.what}", problem.fix)
    if config.models.default.startswith("offline/"):
        yield warning(
            "models",
            "chats use the built-in offline model, which only understands a few phrases",
            "Add a provider and set models.default",
        )
    else:
        yield good("models", f"chats use {config.models.default}")
