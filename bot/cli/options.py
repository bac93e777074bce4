"""What every command that needs the host's data is given."""

import logging
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import click

from bot.config import Config, load_config

__all__ = ["as_json", "located", "quiet_logs", "read_client_config", "read_config"]

F = TypeVar("F", bound=Callable[..., Any])


def located(command: F) -> F:
    """Adds ``--config`` and ``--data-dir``, the keywords ``config`` and ``data_dir``."""
    command = click.option("--data-dir", type=click.Path(path_type=Path), metavar="DIR", help="Use this data directory.")(command)
    return click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Read this configuration file.")(command)


def as_json(command: F) -> F:
    """Adds ``--json``, the keyword ``json``."""
    return click.option("--json", is_flag=True, help="Print JSON.")(command)


def quiet_logs() -> None:
    """Without a configured log, Python prints warnings by itself; a command says what matters in its own words."""
    logging.getLogger("pumice").addHandler(logging.NullHandler())


def read_config(config: Path | None, data_dir: Path | None) -> Config:
    """What a host needs: everything."""
    return _read(config, data_dir, needed_secrets=None)


def read_client_config(config: Path | None, data_dir: Path | None) -> Config:
    """What a command needs that asks the running host, or looks at the data. The host's tokens and keys may be in its environment alone."""
    return _read(config, data_dir, needed_secrets=("http.token",))


def _read(config: Path | None, data_dir: Path | None, *, needed_secrets: Collection[str] | None) -> Config:
    quiet_logs()
    cwd = Path.cwd()
    read = load_config(config, os.environ, cwd, needed_secrets=needed_secrets)
    return read.with_data_dir(cwd / data_dir) if data_dir is not None else read
