"""What a test needs of the machine beyond the pinned dependencies."""

from importlib.util import find_spec

import pytest

__all__ = ["needs_package"]


def needs_package(module: str, extra: str) -> pytest.MarkDecorator:
    """Skips where a package is absent that comes on request only."""
    top = module.partition(".")[0]
    absent = find_spec(top) is None or find_spec(module) is None
    return pytest.mark.skipif(absent, reason=f"{module} is not installed; `make test` installs it, or: pip install pumice[{extra}]")
