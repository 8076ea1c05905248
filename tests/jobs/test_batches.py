from __future__ import annotations

from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.jobs.batches import AT_ONCE, BATCH_EVENTS, FIRST_EVENTS, EventBatch, used_up
from kdissect.model import Fault
from tests.cli.run import CAPTURES
from tests.dissecting import dissect

FAULT = Fault("file", "damaged", "a text")


def exchange() -> Exchange:
    return next(
        each for each in dissect(read_packets([CAPTURES / "errors.pcapng"])) if isinstance(each, Exchange)
    )


def test_a_batch_is_full_of_bytes_or_of_events() -> None:
    batch = EventBatch(most_events=2)
    batch.add([exchange()])
    assert not batch.is_full
    batch.add([exchange()])
    assert batch.is_full
    batch = EventBatch(most_bytes=1)
    batch.add([FAULT])
    assert not batch.is_full  # it has no message
    batch.add([exchange()])
    assert batch.is_full


def test_each_is_twice_as_large_as_the_one_before_it_up_to_a_bound() -> None:
    batch = EventBatch()
    sizes = []
    for _ in range(7):
        while not batch.is_full:
            batch.add([FAULT])
        sizes.append(len(batch))
        assert len(batch.take()) == sizes[-1]
        assert len(batch) == 0
    assert sizes[:3] == [FIRST_EVENTS, 2 * FIRST_EVENTS, 4 * FIRST_EVENTS]
    assert sizes[-1] == BATCH_EVENTS


def test_a_batch_is_used_up_some_events_at_a_time() -> None:
    batch: list[Event] = [FAULT._replace(offset=number) for number in range(2 * AT_ONCE + 1)]
    whole = list(batch)
    found: list[Event] = []
    for events in used_up(batch):
        assert len(events) <= AT_ONCE
        assert len(batch) == len(whole) - len(found) - len(events)
        found += events
    assert found == whole
