"""With which codecs the offsets of produced batches were fetched."""

from __future__ import annotations

from random import Random

import pytest

from kdissect.analysis.fetched_codecs import NOTHING_FETCHED, as_fetched, fetched_ways
from kdissect.analysis.production import FetchedCodecs

GZIP, ZSTD = 2 * 8 + 1, 2 * 8 + 4
"""Two codecs of batches of magic 2."""
OLD_GZIP = 1 * 8 + 1


def fetched(*runs: tuple[int, int, int]) -> FetchedCodecs:
    """Fetched batches: their first and last offsets, with magic and codec."""
    out = FetchedCodecs()
    for run in runs:
        out.add(*run)
    return out


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (-1, (set(), 0, 0)),
        (9, (set(), 0, 0)),
        (10, ({GZIP}, 0, 0)),
        (15, ({GZIP, ZSTD}, 1, 0)),
        (19, ({GZIP, ZSTD}, 1, 0)),
        (20, ({ZSTD}, 1, 0)),
        (30, ({OLD_GZIP}, 0, 1)),
        (31, (set(), 0, 0)),
    ],
)
def test_a_batch_has_the_codecs_of_the_fetches_of_its_offset(
    offset: int, expected: tuple[set[int], int, int]
) -> None:
    ways = fetched_ways(fetched((10, 19, GZIP), (15, 29, ZSTD), (30, 30, OLD_GZIP)))
    assert as_fetched([offset], [GZIP], ways) == expected


def test_each_batch_counts() -> None:
    ways = fetched_ways(fetched((0, 9, ZSTD), (10, 19, GZIP)))
    assert as_fetched([0, 5, 10, 20], [GZIP, GZIP, GZIP, GZIP], ways) == ({GZIP, ZSTD}, 2, 0)


def test_nothing_fetched_tells_nothing() -> None:
    assert as_fetched([0], [GZIP], NOTHING_FETCHED) == (set(), 0, 0)
    assert fetched_ways(fetched()) == NOTHING_FETCHED


def test_fetches_that_overlap_or_touch_are_as_if_each_was_looked_at() -> None:
    random = Random(7)
    for _ in range(200):
        runs = [
            (first, first + random.randrange(-1, 6), random.choice((GZIP, ZSTD, OLD_GZIP)))
            for first in (random.randrange(30) for _ in range(random.randrange(8)))
        ]
        ways = fetched_ways(fetched(*runs))
        for offset in range(40):
            here = {way for first, last, way in runs if first <= offset <= last}
            found, recompressed, converted = as_fetched([offset], [GZIP], ways)
            assert found == here
            assert recompressed == (ZSTD in here)
            assert converted == (OLD_GZIP in here)
