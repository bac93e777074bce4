"""``pumice doctor``."""

import asyncio
import os
from pathlib import Path

import click

from bot.cli.options import as_json, located, quiet_logs
from bot.cli.table import print_json

__all__ = ["command"]

_SIGNS = {"ok": ("ok", "green"), "warning": ("note", "yellow"), "wrong": ("WRONG", "red")}


@click.command("doctor")
@located
@as_json
def command(config: Path | None, data_dir: Path | None, json: bool) -> int:
    """Look at configuration, data, tokens and machine; one line each, with the fix. Exit status 1 if anything is wrong."""
    from bot.clock import SystemClock
    from bot.doctor import examine

    quiet_logs()
    cwd = Path.cwd()
    findings = asyncio.run(examine(config, os.environ, cwd, SystemClock(), data_dir=cwd / data_dir if data_dir is not None else None))
    if json:
        print_json(findings)
    else:
        for finding in findings:
            sign, color = _SIGNS[finding.state]
            line = f"{finding.what}. {finding.fix}" if finding.fix else finding.what
            click.echo(f"{click.style(f'{sign:<5}', fg=color)}  {finding.check}: {line}{'' if line.endswith('?') else '.'}")
    return 1 if any(finding.state == "wrong" for finding in findings) else 0
