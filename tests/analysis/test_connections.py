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
