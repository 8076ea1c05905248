"""Statistics of some exchanges: what does not count still tells what the others mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kdissect.analysis.fold import Row, Statistic
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from tests.analysis.folds import SPEC, events_of, fold, rows_of
from tests.analysis.test_depth import plainly
from tests.analysis.test_topics import named_late

CASE = "java43-groups"
Counts = Callable[[Exchange], bool]


def some(text: str, case: str, counts: Counts) -> Statistic:
    """A statistic that counts some exchanges, and connections that have one."""
    return taken(fold(text, []), events_of(case), counts)


def taken(found: Statistic, events: tuple[Event, ...], counts: Counts) -> Statistic:
    for event in events:
        if isinstance(event, Exchange) and counts(event):
            found.feed(event)
        else:
            found.see(event)
    return found


@pytest.mark.parametrize("text", SPEC)
def test_what_is_only_seen_has_no_rows(text: str) -> None:
    assert some(text, CASE, lambda exchange: False).result() == []
    assert some(text, "midstream", lambda exchange: False).result() == []


@pytest.mark.parametrize("text", SPEC)
def test_where_all_counts_nothing_is_different(text: str) -> None:
    exchanges = [event for event in events_of(CASE) if isinstance(event, Exchange)]
    assert some(text, CASE, lambda exchange: True).result() == fold(text, exchanges).result()


@pytest.mark.parametrize("text", SPEC)
def test_parts_of_some_are_the_whole_of_some(text: str) -> None:
    events = events_of(CASE)
    chosen = [counts_odd, lambda exchange: exchange.api == "Fetch"]
    for counts in chosen:
        whole = some(text, CASE, counts).result()
        for at in range(0, len(events), 101):
            found = taken(fold(text, []), events[:at], counts)
            found.merge(taken(fold(text, []), events[at:], counts))
            assert found.result() == whole


def counts_odd(exchange: Exchange) -> bool:
    return exchange.number % 2 == 1


@pytest.mark.parametrize("text", ["topics", "positions"])
def test_names_of_topics_are_known_where_what_tells_them_does_not_count(text: str) -> None:
    """A Fetch by id counts; the Metadata that names the id comes after it, and does not."""
    events = tuple(named_late("lVhqmGaYRoKUVMnTbJRSXA"))
    found = taken(fold(text, []), events, lambda exchange: exchange.api == "Fetch")
    assert [row["topic"] for row in found.result()] == ["orders"]


def test_software_is_known_where_the_request_that_names_it_does_not_count() -> None:
    whole = {key_of(row): row for row in rows_of("clients", CASE)}
    for row in some("clients", CASE, lambda exchange: exchange.api == "Heartbeat").result():
        assert row["software"] == "apache-kafka-java"
        assert row["apis"] == ["Heartbeat v4"]
        assert 0 < row["exchanges"] < whole[key_of(row)]["exchanges"]


def key_of(row: Row) -> tuple[str, str | None]:
    return row["client"], row["client_id"]


def test_sessions_are_replayed_where_only_some_fetches_count() -> None:
    """Partitions that a chosen fetch names have the rows that they have in the whole."""
    numbers = sorted(
        e.number for e in events_of(CASE) if isinstance(e, Exchange) and e.api == "Fetch" and e.topics
    )
    late = set(numbers[len(numbers) // 2 :])
    whole = rows_of("positions", CASE)
    found = some("positions", CASE, lambda exchange: exchange.number in late).result()
    assert 0 < len(found) < len(whole)
    assert all(row in whole for row in found)


def test_what_is_in_flight_is_what_was_on_the_wire() -> None:
    whole = {row["connection"]: row for row in rows_of("connections", CASE)}
    for row in some("connections", CASE, counts_odd).result():
        exchanges = [
            event
            for event in events_of(CASE)
            if isinstance(event, Exchange) and event.connection == row["connection"]
        ]
        times = [
            (exchange.request.frame.last_ns, exchange.response.frame.first_ns)
            for exchange in exchanges
            if exchange.request is not None and exchange.response is not None
        ]
        counted = [
            depth for depth, exchange in zip(plainly(times), exchanges, strict=True) if counts_odd(exchange)
        ]
        assert row["requests"] == len(counted)
        assert row["in_flight_mean"] == sum(counted) / len(counted)
        assert row["in_flight_max"] == max(counted) <= whole[row["connection"]]["in_flight_max"]
    depths = {row["in_flight_max"] for row in some("connections", CASE, counts_odd).result()}
    assert max(depths) > 1
