"""Shared pieces of the tests of the models slice."""

import random

import pytest

from features.contracts.testing import FakeClock
from tests.features.models.rig import Rig


@pytest.fixture
async def rig():
    """Registries on a fake clock, closed at the end."""
    rig = Rig(FakeClock())
    yield rig
    await rig.close()


@pytest.fixture
def dice() -> random.Random:
    return random.Random(7)
