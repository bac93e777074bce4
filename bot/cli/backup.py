"""``pumice backup``."""

import asyncio
from pathlib import Path

import click

from bot.cli.options import located, read_client_config
from features.contracts.errors import OperatorMustAct

__all__ = ["command"]


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@located
def command(file: Path, force: bool, config: Path | None, data_dir: Path | None) -> None:
    """Write all data into FILE, also while the host runs. It holds keys and every chat: keep it safe."""
    from bot.clock import SystemClock
    from bot.data_backup import write_backup
    from bot.version import VERSION

    if file.exists() and not force:
        raise OperatorMustAct(f"{file} is there already. Say --force to replace it, or choose another name.")
    read = read_client_config(config, data_dir)
    size = asyncio.run(write_backup(read.host.data_dir, read.database_path, file, at=SystemClock().now(), version=VERSION))
    click.echo(f"{file} holds all data ({max(1, round(size / 1000)):,} kB). 'pumice restore {file}' brings it back.")
