"""Statistics that are fed together share what they are views of."""

from __future__ import annotations

import pickle

import pytest

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold_set import Together
from kdissect.analysis.offers import Offers
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.conversation import Connection
from tests.analysis.folds import SPEC, events_of, fold, made

CASE = "java43-groups"


def together() -> Together:
    return Together(statistic(text)[1] for text in SPEC)


def test_rows_are_those_of_each_alone() -> None:
    counted = together()
    for event in events_of(CASE):
        counted.feed(event)
    for text, each in zip(SPEC, counted.statistics, strict=True):
        assert each.result() == fold(text, events_of(CASE)).result(), text


@pytest.mark.parametrize("at", [0, 100, 300])
def test_parts_that_were_sent_from_elsewhere_are_merged_once(at: int) -> None:
    first, second = together(), together()
    for number, event in enumerate(events_of(CASE)):
        (first if number < at else second).feed(event)
    first.merge(pickle.loads(pickle.dumps(second)))
    for text, each in zip(SPEC, first.statistics, strict=True):
        assert each.result() == fold(text, events_of(CASE)).result(), text


@pytest.mark.parametrize("size", [1, 7, 128])
@pytest.mark.parametrize("case", [CASE, "java39-transactions", "wrong-requests"])
def test_rows_are_the_same_where_events_come_several_at_a_time(case: str, size: int) -> None:
    one_by_one, counted, events = together(), together(), events_of(case)
    for event in events:
        one_by_one.feed(event)
    for at in range(0, len(events), size):
        counted.feed_all(events[at : at + size])
    for text, mine, theirs in zip(SPEC, counted.statistics, one_by_one.statistics, strict=True):
        assert mine.result() == theirs.result(), text


def test_nothing_is_kept_of_exchanges_that_came_several_at_a_time() -> None:
    events = events_of(CASE)
    together().feed_all(events)
    assert not any(event.shared for event in events if isinstance(event, Exchange))


def test_views_of_one_fold_are_fed_once() -> None:
    groups, members = (statistic(name)[1] for name in ("groups", "members"))
    counted = Together((groups, members))
    for event in events_of(CASE):
        counted.feed(event)
    (row,) = (each for each in groups.result() if each["group"] == "java43-groups-coop")
    (alone,) = (each for each in fold("groups", events_of(CASE)).result() if each["group"] == row["group"])
    assert row["heartbeats"] == alone["heartbeats"] > 0


class Noted(Offers):
    """Notes what comes to it."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[Exchange] = []

    def _exchange(self, exchange: Exchange) -> None:
        self.came.append(exchange)


def test_exchanges_come_to_those_that_take_in_their_api() -> None:
    """Those of which something is missing come to all: it may be lost of any API."""
    noted = Noted()
    counted = Together((noted,))
    exchanges = [each for each in events_of(CASE) if isinstance(each, Exchange) and each.missing is None]
    lost = made("Heartbeat", 0, {"groupId": "g", "generationId": 1, "memberId": "m"}, None)
    lost.missing = "not captured"
    wanted = [*(each for each in exchanges if each.api == "ApiVersions"), lost]
    for each in (*exchanges, lost):
        counted.feed(each)
    assert noted.came == wanted
    counted.feed_all((*exchanges, lost))
    assert noted.came == wanted * 2


class NotedConnections(Noted):
    """Notes rows of connections among the exchanges."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[Event] = []

    def _exchange(self, exchange: Exchange) -> None:
        self.order.append(exchange)

    def _connection(self, connection: Connection) -> None:
        self.order.append(connection)


def test_connections_come_where_they_end() -> None:
    noted = NotedConnections()
    events = events_of(CASE)
    Together((noted,)).feed_all(events)
    assert noted.order == [
        each
        for each in events
        if isinstance(each, Connection)
        or (isinstance(each, Exchange) and (each.api == "ApiVersions" or each.missing is not None))
    ]
