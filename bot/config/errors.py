"""What is wrong with a configuration."""

from features.contracts.errors import OperatorMustAct

__all__ = ["ConfigurationError"]


class ConfigurationError(OperatorMustAct):
    """The configuration cannot be used; nothing has been started."""
