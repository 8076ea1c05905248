from __future__ import annotations

import pytest

from kdissect.analysis.deliveries import Arrival, ConsumerOutcome, ProducedBatch, deliver

SENT_NS, ACKNOWLEDGED_NS = 1_000, 1_005


def produced(base: int, last: int, producer: str = "one") -> ProducedBatch:
    return ProducedBatch(base, last, SENT_NS, ACKNOWLEDGED_NS, None, None, 7, True, (), producer)


def fetched(base: int, last: int, answered_ns: int) -> Arrival:
    return Arrival(base, base, last, answered_ns - 3, answered_ns, None, None, 7, True)


def outcome_of(batches: list[ProducedBatch], arrivals: list[Arrival]) -> ConsumerOutcome:
    ((_, outcome),) = deliver(batches, {"consumer": arrivals}, (), [])
    return outcome


@pytest.mark.parametrize(
    ("last", "unconsumed"),
    [(0, 9 + 3 + 10), (4, 5 + 3 + 10), (6, 3 + 1 + 10), (8, 1 + 10), (9, 10), (11, 9), (20, 0), (25, 0)],
)
def test_records_after_the_last_fetched_offset_are_unconsumed_also_of_batches_that_overlap(
    last: int, unconsumed: int
) -> None:
    batches = [produced(0, 9), produced(5, 7), produced(11, 20)]
    assert outcome_of(batches, [fetched(0, last, 2_000)]).unconsumed == unconsumed


def test_times_count_each_record_and_those_of_the_producer_each_batch() -> None:
    count = 600
    batches = [produced(at * 10, at * 10 + 9, f"producer-{at % 2}") for at in range(count)]
    out = outcome_of(batches, [fetched(at * 10, at * 10 + 9, 2_000 + at) for at in range(count)])
    assert (out.sets, out.records, out.unconsumed) == (count, 10 * count, 0)
    assert out.send.count == out.ack.count == out.waited.count == 10 * count
    assert (out.send.least, out.send.most) == (2_000 - SENT_NS, 2_000 + count - 1 - SENT_NS)
    assert (out.ack.least, out.waited.least) == (2_000 - ACKNOWLEDGED_NS, 2_000 - 3 - ACKNOWLEDGED_NS)
    assert (out.produce.count, out.produce.most) == (count, ACKNOWLEDGED_NS - SENT_NS)
    assert out.producers == {"producer-0", "producer-1"}


def test_times_of_the_producer_count_once_if_records_come_in_several_fetches() -> None:
    out = outcome_of([produced(0, 9)], [fetched(0, 4, 2_000), fetched(5, 9, 3_000)])
    assert (out.sets, out.records, out.read_again) == (1, 10, 0)
    assert (out.send.count, out.produce.count) == (10, 1)
