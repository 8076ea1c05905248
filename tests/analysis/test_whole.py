"""A whole has the same rows, and leaves out as much, however its events came: at once, one by one, or in
parts that were counted elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from kdissect.analysis import chapters
from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import Row
from kdissect.analysis.fold_set import Together
from kdissect.analysis.part import counted
from kdissect.analysis.whole import WholeFold
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.insight.judge import Judge
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.conversation import Connection
from tests.amount import times
from tests.analysis.folds import SPEC, events_of
from tests.analysis.test_part import OfApi

CASES = ("java43-groups", "java39-transactions", "java43-kip848", "java43-share-2", "wrong-requests")
LIMITS = {
    "none": {},
    "little memory": {"fact_bytes": 60_000},
    "some memory": {"fact_bytes": 400_000},
    "more memory": {"fact_bytes": 1_500_000},
    "rows": {"rows": 3},
    "events": {"timeline_events": 20},
    "events of a key": {"timeline_key_events": 3},
    "record sets": {"delivery_sets": 9},
}
"""Limits of which each is reached by some fold."""


@pytest.fixture(autouse=True)
def _short_chapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapters, "EXCHANGES", 40)
    monkeypatch.setattr(chapters, "PACKETS", 150)
    monkeypatch.setattr(chapters, "CONNECTIONS", 11)


def together(limits: Limits) -> Together:
    return Together(statistic(text, limits)[1] for text in SPEC)


def fed(whole: WholeFold[Any], events: Sequence[Event]) -> WholeFold[Any]:
    whole.feed_all(events)
    whole.finish()
    return whole


def added(
    whole: WholeFold[Any], events: Sequence[Event], random: Random, api: str | None = None
) -> WholeFold[Any]:
    """The events in parts that were cut anywhere. Some of them are fed."""
    cuts = sorted(random.randrange(len(events) + 1) for _ in range(random.randrange(1, 12)))
    chosen = OfApi(api or "")
    for begin, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        some = events[begin:end]
        if api is not None and random.random() < 0.3:
            for event in some:
                whole.feed(event, chosen.counts(event))
        elif api is None and random.random() < 0.3:
            whole.feed_all(some)
        else:
            lists = [some[at : at + 50] for at in range(0, len(some), 50)]
            part = counted(lists, whole.new, None if api is None else OfApi(api))
            whole.add(pickle.loads(pickle.dumps(part)), chosen.chosen)
    whole.finish()
    return whole


def contents(whole: WholeFold[Together]) -> dict[str, tuple[Any, ...]]:
    return {
        text: (each.result(), each.left_out, each.room.refused, each.room.held)
        for text, each in zip(SPEC, whole.counted.statistics, strict=True)
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("limit", LIMITS)
def test_parts_are_what_was_fed_at_once(limit: str, case: str) -> None:
    limits, events, random = DEFAULTS._replace(**LIMITS[limit]), events_of(case), Random(f"{limit} {case}")
    once = contents(fed(WholeFold(lambda: together(limits)), events))
    for _ in range(times(2, 20)):
        parts = contents(added(WholeFold(lambda: together(limits)), events, random))
        for text in SPEC:
            assert parts[text] == once[text], text


@pytest.mark.parametrize("limits", [{"rows": 20}, {"fact_bytes": 400_000}])
def test_connections_without_exchanges_come_when_they_ended(limits: dict[str, int]) -> None:
    """As those of a port scan: the order in which rows come decides which ones are kept."""
    random, events = Random(7), list[Event]()
    ended = next(each for each in events_of("java43-groups") if isinstance(each, Connection))
    for event in events_of("java43-groups"):
        events.append(event)
        if random.random() < 0.2:
            number = 40 + len(events)
            events.append(ended._replace(connection=number, client=f"10.9.9.9:{number}"))
    once = contents(fed(WholeFold(lambda: together(DEFAULTS._replace(**limits))), events))
    for _ in range(times(4, 20)):
        parts = contents(added(WholeFold(lambda: together(DEFAULTS._replace(**limits))), events, random))
        for text in SPEC:
            assert parts[text] == once[text], text


@pytest.mark.parametrize("limit", LIMITS)
def test_every_limit_is_reached(limit: str) -> None:
    limits = DEFAULTS._replace(**LIMITS[limit])
    left_out = [
        each.left_out
        for case in CASES
        for each in fed(WholeFold(lambda: together(limits)), events_of(case)).counted.statistics
    ]
    assert (sum(left_out) > 0) == (limit != "none")


@pytest.mark.parametrize("limit", LIMITS)
def test_one_by_one_is_at_once(limit: str) -> None:
    limits, events = DEFAULTS._replace(**LIMITS[limit]), events_of("java43-groups")
    whole = WholeFold(lambda: together(limits))
    for event in events:
        whole.feed(event)
    whole.finish()
    assert contents(whole) == contents(fed(WholeFold(lambda: together(limits)), events))


@pytest.mark.parametrize("limit", ["none", "little memory", "rows"])
def test_with_a_filter_too(limit: str) -> None:
    limits, events, api = DEFAULTS._replace(**LIMITS[limit]), events_of("java43-groups"), "JoinGroup"
    whole, chooser = WholeFold(lambda: together(limits)), OfApi(api)
    for event in events:
        whole.feed(event, chooser.counts(event))
    whole.finish()
    for seed in range(times(2, 20)):
        parts = added(WholeFold(lambda: together(limits)), events, Random(seed), api)
        assert contents(parts) == contents(whole)


@pytest.mark.parametrize("size", [100_000, 1_000_000])
@pytest.mark.parametrize("case", CASES[:2])
def test_findings_are_the_same(case: str, size: int) -> None:
    limits, events = DEFAULTS._replace(fact_bytes=size), events_of(case)
    once = fed(WholeFold(lambda: Judge(limits)), events).counted.judged()
    assert once.incomplete
    for seed in range(times(2, 10)):
        parts = added(WholeFold(lambda: Judge(limits)), events, Random(seed)).counted.judged()
        assert parts == once


def test_once_there_are_too_many_clusters_no_more_are_taken() -> None:
    """Open folds still meet some as events come, in an order that depends on the parts."""
    limits = DEFAULTS._replace(rows=3)
    whole = WholeFold(lambda: Together([statistic("topics", limits)[1]]))
    whole.feed_all(events_of("java43-groups"))
    clusters = whole.counted._clusters
    assert clusters is not None
    assert clusters.room.held > 0
    assert not clusters.room.is_open
    assert not clusters.room.takes(1)


def test_only_what_is_too_full_awaits_chapters() -> None:
    limits = DEFAULTS._replace(timeline_key_events=3)
    whole = fed_until_now(limits)
    assert 0 < len(whole._full) < len(whole._fed) // 2
    assert not any(whole._fed[place].room.is_open for place in whole._full)
    assert sum(each.room.is_open for each in whole._fed) == len(whole._fed) - len(whole._full)


def fed_until_now(limits: Limits) -> Together:
    """Folds that were fed and may get further events."""
    whole = WholeFold(lambda: together(limits))
    whole.feed_all(events_of("java43-groups"))
    return whole.counted


def test_what_fits_is_as_without_chapters() -> None:
    events, alone = events_of("java43-groups"), together(DEFAULTS)
    alone.feed_all(events)
    whole = fed(WholeFold(lambda: together(DEFAULTS)), events).counted
    assert [each.result() for each in whole.statistics] == [each.result() for each in alone.statistics]


def test_no_more_is_kept_than_the_limits_allow_and_the_first_stay() -> None:
    limits = DEFAULTS._replace(rows=3)
    few, every = (rows_within(each) for each in (limits, DEFAULTS))
    strict = together(limits)
    strict.feed_all(events_of("java43-groups"))
    for text, each in zip(SPEC, strict.statistics, strict=True):
        assert len(few[text]) <= max(3, len(each.result())), text
    assert few["connections"] == every["connections"][:3]


def rows_within(limits: Limits) -> dict[str, list[Row]]:
    whole = fed(WholeFold(lambda: together(limits)), events_of("java43-groups"))
    return {text: each.result() for text, each in zip(SPEC, whole.counted.statistics, strict=True)}


def test_it_keeps_to_the_limits_after_its_end() -> None:
    events = events_of("java43-groups")
    whole = WholeFold(lambda: together(DEFAULTS._replace(fact_bytes=8_000_000)))
    fed(whole, events)
    assert not any(each.left_out for each in whole.counted.statistics)
    for copy in range(1, 6):
        for event in events:
            if isinstance(event, Exchange):
                whole.counted.feed(_elsewhere(event, copy))
    assert sum(each.room.held for each in whole.counted._fed) <= 8_000_000
    assert sum(each.left_out for each in whole.counted.statistics) > 0


def _elsewhere(each: Exchange, copy: int) -> Exchange:
    client, broker = (
        end[:1] + bytes([copy]) + end[2:] for end in (each.client_endpoint, each.broker_endpoint)
    )
    connection = each.connection + 1_000 * copy
    return Exchange(connection, client, broker, each.request, each.response, each.missing, number=each.number)
