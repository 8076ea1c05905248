"""Damaged captures and messages give exchanges and faults, and nothing else. ``python -m
tests.acceptance.mutate`` tries more."""

from __future__ import annotations

import pytest

from tests.acceptance.mutate import failures
from tests.amount import times

PARTS = 4
COUNT = times(6_000, 50_000)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_damage_raises_or_hangs(part: int) -> None:
    assert list(failures(f"{part}-{number}" for number in range(COUNT // PARTS))) == []
