"""The command line. Each command's module is imported when it is used, so that help and small commands start at once."""

from bot.cli.main import main

__all__ = ["main"]
