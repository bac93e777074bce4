"""``pumice restore``."""

from pathlib import Path

import click

from bot.cli.options import located, read_client_config

__all__ = ["command"]


@click.command("restore")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Put the data that is there aside.")
@located
def command(file: Path, replace: bool, config: Path | None, data_dir: Path | None) -> None:
    """Make the data directory of what 'pumice backup' wrote; on another machine too. The host must not run."""
    from bot.clock import SystemClock
    from bot.data_backup import restore_data

    read = read_client_config(config, data_dir)
    aside = restore_data(file, read.host.data_dir, replace=replace, at=SystemClock().now())
    click.echo(f"{read.host.data_dir} is as it was in {file}." + (f" What was there is in {aside}." if aside is not None else ""))
