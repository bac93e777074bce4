"""Shared pieces of the tests of the models slice."""

from collections.abc import AsyncIterator

import pytest

from features.contracts.testing import FakeClock
from tests.features.models.rig import Rig


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """Registries on a fake clock, closed at the end."""
    rig = Rig(FakeClock())
    yield rig
    await rig.close()
