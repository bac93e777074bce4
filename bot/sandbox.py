"""Whether what agents start is kept in a sandbox, as the configuration wants and the machine allows."""

import logging
import os
from pathlib import Path

from bot.config import Config
from features.contracts.errors import OperatorMustAct
from features.processes import BubblewrapSandbox

__all__ = ["make_sandbox", "sandbox_problem"]

log = logging.getLogger("pumice.host")


async def make_sandbox(config: Config) -> BubblewrapSandbox | None:
    """None where there is to be none, or none works and ``auto`` leaves it at that.

    Raises:
        OperatorMustAct: bubblewrap is demanded and does not work.
    """
    problem = await sandbox_problem(config)
    if problem is None:
        return _sandbox(config)
    if config.processes.sandbox == "bubblewrap":
        raise OperatorMustAct(f"processes.sandbox is 'bubblewrap', and {problem}. Or set it to 'auto': bash is then for owners only.")
    log.info("no sandbox", extra={"facts": {"reason": problem}})
    return None


async def sandbox_problem(config: Config) -> str | None:
    """Why there is no sandbox; None where it works."""
    if config.processes.sandbox == "none":
        return "processes.sandbox is 'none'"
    return await _sandbox(config).problem()


def _sandbox(config: Config) -> BubblewrapSandbox:
    database = config.database_path
    hidden = [config.host.data_dir, *(database.with_name(database.name + ending) for ending in ("", "-wal", "-shm", "-journal"))]
    hidden += config.secret_files
    if config.source is not None:
        hidden.append(config.source)
    if (credentials := os.environ.get("CREDENTIALS_DIRECTORY")) is not None:
        hidden.append(Path(credentials))
    return BubblewrapSandbox(
        hidden=hidden,
        readable=[config.host.data_dir / "skills"],
        writable=config.tools.roots,
        network=config.processes.sandbox_network,
    )
