"""Damaged captures and messages give exchanges and faults, and nothing else."""

from __future__ import annotations

import pytest

from tests.acceptance.mutate import failures

PARTS = 10
COUNT = 50_000


@pytest.mark.parametrize("part", range(PARTS))
def test_no_damage_raises_or_hangs(part: int) -> None:
    assert list(failures(f"{part}-{number}" for number in range(COUNT // PARTS))) == []
