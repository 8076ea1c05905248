"""The row of each connection: what it keeps after the connection has ended."""

from __future__ import annotations

import pickle
import random
import tracemalloc

import pytest

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import Row
from kdissect.dissect import Event
from kdissect.session.conversation import Connection
from tests.analysis.folds import events_of

CASES = ("java43-groups", "midstream", "wrong-requests")


def rows(fold: Connections) -> list[Row]:
    return fold.result()


def counted(case: str, order: random.Random | None = None) -> Connections:
    """All events; with ``order``, the ends of connections come at any place."""
    events = list(events_of(case))
    if order is not None:
        ends = [event for event in events if isinstance(event, Connection)]
        events = [event for event in events if not isinstance(event, Connection)]
        for end in ends:
            events.insert(order.randrange(len(events) + 1), end)
    fold = Connections()
    for event in events:
        fold.feed(event)
    return fold


@pytest.mark.parametrize("case", CASES)
def test_exchanges_after_the_end_of_a_connection_count(case: str) -> None:
    expected = rows(counted(case))
    assert any(row["requests"] for row in expected)
    for seed in range(4):
        assert rows(counted(case, random.Random(seed))) == expected


@pytest.mark.parametrize("case", CASES)
def test_rows_can_be_read_and_sent_at_any_time(case: str) -> None:
    fold, again = Connections(), Connections()
    for event in events_of(case):
        fold.feed(event)
        again.feed(event)
        again.result()
        again = pickle.loads(pickle.dumps(again)) if isinstance(event, Connection) else again
    assert rows(again) == rows(fold)


def test_connections_that_have_ended_take_less_than_half_of_the_memory() -> None:
    events = events_of("java43-groups")
    closed, still_open = memory(events), memory(tuple(e for e in events if not isinstance(e, Connection)))
    assert closed < still_open / 2


def test_thousands_of_ended_connections_take_less_than_220_bytes_each() -> None:
    fold = Connections()
    events_of("java43-groups")  # reading them takes memory, too
    tracemalloc.start()
    feed_ended(fold, MANY)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 220 * MANY


@pytest.mark.parametrize("case", CASES)
def test_exchanges_count_after_thousands_of_others_have_ended(case: str) -> None:
    events = events_of(case)
    exchanges = [event for event in events if not isinstance(event, Connection)]
    few, many = Connections(), Connections()
    for fold, others in ((few, 0), (many, MANY)):
        for event in events:
            fold.feed(event)
        feed_ended(fold, others)
        for event in exchanges:
            fold.feed(event)
    expected = rows(few)
    found = rows(many)
    assert found[: len(expected)] == expected
    assert [row["connection"] for row in found[len(expected) :]] == [*range(FIRST, FIRST + MANY)]


@pytest.mark.parametrize("is_sent", [False, True])
def test_parts_with_thousands_of_ended_connections_are_merged(is_sent: bool) -> None:
    one, other, whole = Connections(), Connections(), Connections()
    feed_ended(one, MANY)
    feed_ended(other, 2 * MANY)
    feed_ended(whole, 2 * MANY)
    one.merge(pickle.loads(pickle.dumps(other)) if is_sent else other)
    assert rows(one) == rows(whole)
    assert sorted(rows(one), key=lambda row: row["connection"]) == rows(one)


MANY = 10_000
FIRST = 1_000
"""The number of the first of them."""


def feed_ended(fold: Connections, count: int) -> None:
    """Connections that end in another order than they began."""
    end = next(event for event in events_of("java43-groups") if isinstance(event, Connection))
    for number in random.Random(0).sample(range(count), count):
        fold.feed(end._replace(connection=FIRST + number, client=f"10.0.{number >> 8}.{number % 256}:1"))


def memory(events: tuple[Event, ...]) -> int:
    """The bytes that the rows of these events take, many times over."""
    folds = [Connections() for _ in range(20)]
    tracemalloc.start()
    for fold in folds:
        for event in events:
            fold.feed(event)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held
