"""Memory does not grow with the capture. The whole run is ``python -m tests.acceptance.soak``."""

from __future__ import annotations

import sys

import pytest

from tests.acceptance.soak import MIB, SCENARIOS, soak_apart
from tests.amount import LONG

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

SCALE = 0.02 if LONG else 0.01
CONTAINED = () if LONG else ("unanswered", "stream")
"""What ``unanswered-on-many`` and ``lossy-stream`` try too."""
MOST_BYTES = 100 * MIB
"""Of which Python and kdissect themselves take about 40."""


@pytest.mark.parametrize("name", [each for each in SCENARIOS if each not in CONTAINED])
def test_memory_does_not_grow(name: str) -> None:
    held = soak_apart(name, SCALE)
    assert held.events
    assert held.is_flat, held
    assert held.peak < MOST_BYTES
