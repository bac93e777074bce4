"""Fixtures of the agent's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.features.agent.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Makes rigs; afterwards each one's script must have been used up."""
    made: list[Rig] = []

    def make(*steps: Any, **options: Any) -> Rig:
        made.append(Rig(tmp_path, *steps, **options))
        return made[-1]

    yield make
    for each in made:
        each.provider.check()
