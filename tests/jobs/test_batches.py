from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.jobs.batches import BATCH_EVENTS, EventBatch, opened
from kdissect.model import Fault
from kdissect.names import TopicNames
from kdissect.session.conversation import Connection
from tests.cli.run import CAPTURES

ID, OTHER = "Vfl7uCnbST6KTiOY1o9SbA", "bGlicmRrYWZrYS1pZC0wMQ"


def events_of(path: Path) -> tuple[list[Event], TopicNames]:
    """What a capture holds, and the names that it tells."""
    dissector = Dissector()
    events = [event for item in read_packets([path]) for event in dissector.feed(item)]
    return [*events, *dissector.close()], dissector.names


@pytest.mark.parametrize("name", ["errors.pcapng", "loss.pcapng", "basic-kafka43.pcapng"])
def test_events_come_back_in_order_with_their_topics_named(name: str) -> None:
    events, names = events_of(CAPTURES / name)
    batch, history = EventBatch(), TopicNames()
    for event in events:
        batch.add(event)
    for told in names.order:
        history.learn(*told)
    first_ns, found = opened(batch.take(17), history)
    again = list(found)
    assert first_ns == 17
    assert [type(each) for each in again] == [type(each) for each in events]
    for mine, theirs in zip(events, again, strict=True):
        if isinstance(mine, Exchange) and isinstance(theirs, Exchange):
            assert (theirs.number, theirs.topics, theirs.faults) == (mine.number, mine.topics, mine.faults)
        else:
            assert theirs == mine
    assert {Connection, Exchange} <= {type(each) for each in again}
    assert len(batch) == 0


def test_a_batch_is_full_of_bytes_or_of_events() -> None:
    *_, exchange = events_of(CAPTURES / "errors.pcapng")[0]
    batch = EventBatch(most_events=2)
    batch.add(exchange)
    assert not batch.is_full
    batch.add(exchange)
    assert batch.is_full
    fault = Fault("file", "damaged", "a text")
    batch = EventBatch(most_bytes=1)
    batch.add(fault)
    assert not batch.is_full  # it has no message
    batch = EventBatch()
    for _ in range(BATCH_EVENTS):
        batch.add(fault)
    assert batch.is_full


def test_a_name_counts_from_its_packet_and_not_before_it_was_learned() -> None:
    names = TopicNames()
    names.learn(ID, "of the configuration", 0)
    history = TopicNames()
    names.learn(OTHER, "late", 50)
    names.learn(OTHER, "later still", 60)  # the earlier packet counts
    known = len(names.order)
    names.learn(OTHER, "early", 5)
    for told in names.order:
        history.learn(*told)
    assert history.up_to(49, known).get(OTHER) is None
    assert history.up_to(50, known).get(OTHER) == "late"
    assert history.up_to(49, known + 1).get(OTHER) == "early"
    assert history.up_to(4, known + 1).get(OTHER) is None
    assert history.up_to(99, 1).get(OTHER) is None
    assert history.up_to(0, known).get(ID) == "of the configuration"
    assert history.up_to(99, known).get("unknown") is None


def test_only_what_is_news_is_told() -> None:
    names = TopicNames()
    for packet in (9, 9, 12, 3, 7):
        names.learn(ID, f"at {packet}", packet)
    assert [packet for _, _, packet in names.order] == [9, 3]


def test_what_names_an_exchange_can_be_sent_back() -> None:
    history = TopicNames()
    history.learn(ID, "orders", 1)
    assert pickle.loads(pickle.dumps(history.up_to(1, 1))).get(ID) == "orders"
