"""The version, without asking the package's metadata, which takes longer than the rest of ``pumice --version``."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
