"""What starting costs: help must not load what only a running host needs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    *("anthropic", "claude_agent_sdk", "google", "mcp", "openai", "xllamacpp"),
    *("telegram", "starlette", "uvicorn", "PIL", "structlog", "httpx2", "httpx", "rich", "prompt_toolkit"),
}


def imported(*command: str) -> set[str]:
    """Top-level packages that a command imported."""
    done = subprocess.run([sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True, cwd=ROOT)
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_and_version_import_almost_nothing(arguments: tuple[str, ...]) -> None:
    """They are typed to see whether the thing works at all; msgspec is our own records, not needed yet."""
    modules = imported("-m", "bot.cli", *arguments)

    assert "click" in modules
    assert modules & (HEAVY | {"msgspec", "sqlite3", "aiosqlite", "asyncio"}) == set()


def test_the_configuration_is_read_without_any_heavy_library() -> None:
    """Every command reads it."""
    assert imported("-c", "import bot.config, bot.lock, bot.access, bot.settings") & HEAVY == set()
