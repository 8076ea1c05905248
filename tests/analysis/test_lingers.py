"""How long producers kept batches."""

from __future__ import annotations

import random
from collections.abc import Iterable

from kdissect.analysis.fold import Row
from kdissect.analysis.lingers import MARGIN, Lingers
from kdissect.exchange import Exchange
from tests.analysis.folds import fold
from tests.analysis.traffic import fetch, produce


def lingers(events: Iterable[Exchange]) -> list[Row]:
    statistic = Lingers()
    for event in events:
        statistic.feed(event)
    return statistic.result()


def test_the_longest_time_until_a_young_record_was_in_a_batch_is_told() -> None:
    events = [
        produce((1_000, 1_010), 0, [400, 900]),
        produce((2_000, 2_010), 2, [1_800, 1_990]),
    ]
    (row,) = lingers(events)
    assert row["linger_max_ns"] == 600_000_000


def test_old_records_are_not_told() -> None:
    assert lingers([produce((1_000, 1_010), 0, [400, 410])]) == []


def test_whatever_delivery_tells_of_young_records_is_told() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        events = []
        for at in range(chance.randrange(1, 6)):
            sent = 10_000 * (at + 1)
            first = sent - chance.randrange(1, 1_000)
            stamps = [first, chance.randrange(first, sent)]
            events += [
                produce((sent, sent + 5), 2 * at, stamps),
                fetch((sent + 6, sent + 9), 2 * at, [(2 * at, stamps)], 2 * at + 2),
            ]
        longest = max((row["linger_max_ns"] for row in lingers(events)), default=0)
        for row in fold("delivery", events).result():
            if 2 * row["youngest_p50_ns"] < row["linger_p50_ns"]:
                assert MARGIN * longest >= row["linger_p50_ns"]
