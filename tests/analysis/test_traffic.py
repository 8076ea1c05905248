"""Traffic by API, client, topic, error and layer: the figures are those of the exchanges."""

from __future__ import annotations

from collections import Counter

import pytest

from kdissect.analysis.first_names import OTHER, FirstNames
from kdissect.analysis.fold import Row
from kdissect.analysis.traffic import BUCKETS_NS, Traffic
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from tests.analysis.folds import events_of

CASES = ("java43-errors", "wrong-requests", "midstream")


def exchanges(case: str) -> list[Exchange]:
    return [event for event in events_of(case) if isinstance(event, Exchange)]


def rows(case: str, *by: str, names: FirstNames | None = None) -> list[Row]:
    fold = Traffic(DEFAULTS, by)
    if names is not None:
        fold.keep_first(names)
    for exchange in exchanges(case):
        fold.feed(exchange)
    return fold.result()


@pytest.mark.parametrize("case", CASES)
def test_a_row_of_an_api_adds_up_its_exchanges(case: str) -> None:
    found = {row["api"]: row for row in rows(case)}
    assert set(found) == {each.api for each in exchanges(case)}
    for api, row in found.items():
        own = [each for each in exchanges(case) if each.api == api]
        times = [each.latency_ns for each in own if each.latency_ns is not None]
        assert row["exchanges"] == len(own)
        assert row["requests"] == sum(each.request is not None for each in own)
        assert row["unanswered"] == sum(each.response is None for each in own)
        assert row["request_bytes"] == sum(each.request_size or 0 for each in own)
        assert row["response_bytes"] == sum(each.response_size or 0 for each in own)
        classes = Counter(each.error_class for each in own)
        assert (row["errors"], row["fatal"], row["routine"]) == (
            classes["fatal"] + classes["retriable"],
            classes["fatal"],
            classes["routine"],
        )
        assert (row["answered"], row["latency_sum_ns"]) == (len(times), sum(times))
        below = [sum(each <= end for each in times) for end in BUCKETS_NS]
        assert [sum(row["buckets"][: at + 1]) for at in range(len(BUCKETS_NS))] == below
        assert sum(row["buckets"]) == len(times)


def test_an_exchange_counts_for_each_topic_and_for_its_first_error() -> None:
    seen = exchanges("java43-errors")
    topics = Counter((each.api, topic) for each in seen for topic in each.topics)
    found = {(row["api"], row["topic"]): row["exchanges"] for row in rows("java43-errors", "topic")}
    assert {key: count for key, count in found.items() if count} == topics
    assert topics
    errors = Counter((each.api, each.error, each.error_class) for each in seen if each.error is not None)
    by_error = {
        (row["api"], row["error"], row["error_class"]): row["exchanges"]
        for row in rows("java43-errors", "error")
    }
    assert by_error == errors


def test_faults_count_by_layer() -> None:
    faults = Counter(fault.layer for each in exchanges("wrong-requests") for fault in each.faults)
    counted: Counter[str] = Counter()
    for row in rows("wrong-requests", "layer"):
        counted[row["layer"]] += row["faults"]
    assert counted == faults
    assert faults


def test_record_sets_count_for_their_topic() -> None:
    sets = [place for each in exchanges("java43-errors") for place in each.record_sets()]
    found = [row["record_bytes"] for row in rows("java43-errors", "topic")]
    assert sum(each or 0 for each in found) == sum(len(place.data) for place in sets) > 0
    assert None in found  # what carries no records


def test_further_names_count_together_where_names_are_bounded() -> None:
    whole, few = rows("wrong-requests"), rows("wrong-requests", names=FirstNames(2))
    seen = list(dict.fromkeys(each.api for each in exchanges("wrong-requests")))
    assert {row["api"] for row in few} == {*seen[:2], OTHER}
    assert sum(row["request_bytes"] for row in few) == sum(row["request_bytes"] for row in whole)
