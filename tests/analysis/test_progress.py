"""How a fetcher goes on in a partition, move by move."""

from __future__ import annotations

import pytest

from kdissect.analysis.ledgers import NONE
from kdissect.analysis.progress import Move, progress


def asks(offset: int) -> Move:
    return 1, 1, offset, NONE, NONE, NONE, 0, 0, 1_000


def brings(records: int, high: int = 88) -> Move:
    return 2, 1, NONE, high, NONE, NONE, records, 0, 0


@pytest.mark.parametrize(("first", "starved"), [(0, 14), (5, 13), (NONE, 0)])
def test_after_an_answer_that_is_cut_nobody_knows_where_it_goes_on(first: int, starved: int) -> None:
    """The request that says so may be cut, too."""
    found = progress([asks(0), brings(first), *[brings(0)] * 13])
    assert found.starved == starved
    assert found.begun_at == 0
    again = progress([asks(0), brings(first), *[brings(0)] * 13, asks(70), brings(0), brings(0)])
    assert (again.begun_at, again.starved) == (0, max(starved, 2))
