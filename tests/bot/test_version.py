"""One version, said in two places."""

import tomllib
from pathlib import Path

from bot.version import VERSION


def test_the_version_is_the_project_s() -> None:
    """The one in the code saves the time of asking the metadata."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())

    assert project["project"]["version"] == VERSION
