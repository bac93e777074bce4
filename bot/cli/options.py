"""What every command that needs the host's data is given."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bot.config import Config, load_config

__all__ = ["as_json", "located", "quiet_logs", "read_config"]

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
    quiet_logs()
    cwd = Path.cwd()
    read = load_config(config, os.environ, cwd)
    return read.with_data_dir(cwd / data_dir) if data_dir is not None else read
