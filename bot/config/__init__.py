"""What the host is told: ``pumice.toml``, ``PUMICE_*`` variables and the secrets they refer to.

Everything is read, resolved and checked before anything starts. A mistake is one line that names the key, the value found and what would
be right.
"""

from bot.config.config import Config
from bot.config.errors import ConfigurationError
from bot.config.load import load_config

__all__ = ["Config", "ConfigurationError", "load_config"]
