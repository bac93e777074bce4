"""Reading a configuration, start to end."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bot.config.checks import check, warnings_of
from bot.config.config import Config, Sections
from bot.config.reader import Reader
from bot.config.secret_references import SecretReferences
from bot.config.source import find_file, lay_over, read_file
from bot.zones import machine_zone

__all__ = ["load_config"]


def load_config(path: Path | None, environ: Mapping[str, str], cwd: Path, *, needed_secrets: Collection[str] | None = None) -> Config:
    """Find, read, resolve and check.

    Args:
        path: the file to read; None looks for one in the usual places, and none is fine.
        cwd: what relative paths are relative to where there is no file.
        needed_secrets: the keys of the only secrets that must be there; None for all.

    Raises:
        ConfigurationError: the first mistake, as one line.
    """
    cwd = cwd.absolute()
    source = find_file(path, environ, cwd)
    table: dict[str, Any] = read_file(source) if source else {}
    lay_over(table, environ)
    base = source.parent if source else cwd
    home = Path(environ["HOME"]) if environ.get("HOME") else None
    secrets = SecretReferences(environ, base, needed=needed_secrets)
    fields = Reader(secrets, base=base, home=home, source=source).read(Sections, table)
    if not fields["host"].default_time_zone:
        fields["host"] = msgspec.structs.replace(fields["host"], default_time_zone=machine_zone(environ))
    config = Config(**fields, source=source, base=base, secrets=tuple(secrets.found), secret_files=tuple(secrets.files), warnings=())
    check(config)
    denied = [tool for tool, policy in config.approvals.options().tools.items() if policy == "deny"]  # nothing to offer to a model
    disabled = (*config.tools.disabled, *sorted(denied))
    return msgspec.structs.replace(
        config,
        tools=msgspec.structs.replace(config.tools, disabled=tuple(dict.fromkeys(disabled))),
        warnings=(*secrets.warnings, *warnings_of(config)),
    )
