"""``pumice run``."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import click

from bot.cli.options import located, read_config
from bot.config import Config, ConfigurationError

__all__ = ["command"]

_FORCED = 130


@click.command("run")
@located
@click.option(
    "--role",
    type=click.Choice(["all", "gateway", "worker", "scheduler"]),
    default="all",
    show_default=True,
    help="Which part of the host to run; one machine runs all.",
)
def command(config: Path | None, data_dir: Path | None, role: str) -> int:
    """Run the host until SIGTERM or Ctrl-C; a second one forces it."""
    read = read_config(config, data_dir)
    if role != "all":
        raise ConfigurationError(f"--role {role} needs a shared database, which this version does not serve yet. Leave --role out.")
    return asyncio.run(_run(read))


async def _run(config: Config) -> int:
    """Serve until a signal comes; it cancels the host, which then settles and leaves by itself."""
    from bot.run import run_host

    loop = asyncio.get_running_loop()
    host = asyncio.ensure_future(run_host(config))
    asked_before = False

    def stop() -> None:
        nonlocal asked_before
        if asked_before:
            os._exit(_FORCED)
        asked_before = True
        click.echo("Stopping; once more to force it.", err=True)
        host.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await host
    except asyncio.CancelledError:
        if not asked_before:
            raise
        return 0
    finally:
        sys.stdout.flush()
