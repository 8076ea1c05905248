"""Record sets of an exchange, found once for all that are fed it."""

from __future__ import annotations

from kdissect.analysis.batches import Batches
from kdissect.analysis.headers import headers, sets_of
from kdissect.analysis.sets import SharedParts, record_sets, topics_of
from kdissect.analysis.waits import split
from kdissect.limits import DEFAULTS, Limits
from tests.analysis.produced import batch, fetch, produce


def test_sets_are_found_once_for_an_exchange() -> None:
    data = batch("a", "b") + batch("c")
    one, other = produce(0, data), fetch(1, data, 3)
    found = record_sets(one, DEFAULTS)
    assert record_sets(one, DEFAULTS) is found
    assert record_sets(one, Limits(rows=7)) is not found
    (there,) = record_sets(other, DEFAULTS)
    assert there.place.message is other.response
    (here,) = record_sets(one, DEFAULTS)
    assert here.place.message is one.request


def test_an_answer_that_comes_later_is_found() -> None:
    exchange = fetch(1, batch("a"), 1)
    answer, exchange.response = exchange.response, None
    assert record_sets(exchange, DEFAULTS) == []
    exchange.response = answer
    assert len(record_sets(exchange, DEFAULTS)) == 1


def test_a_set_tells_what_its_readers_tell() -> None:
    data = batch("a", "b") + batch("c") + batch("d")[:-1]
    (found,) = record_sets(produce(0, data), DEFAULTS)
    counted = Batches()
    counted.add(data, DEFAULTS)
    assert found.batches == counted
    assert found.headers == headers(data)
    assert found.sets == sets_of(data)
    assert found.batches is found.batches


def test_many_exchanges_keep_their_own_as_long_as_they_are_looked_at() -> None:
    exchanges = [produce(0, batch("a")), produce(1, batch("b"))]
    for each in exchanges:
        each.shared = SharedParts()
    found = [(record_sets(each, DEFAULTS), topics_of(each), split(each)) for each in exchanges]
    for each, (sets, topics, waits) in zip(exchanges, found, strict=True):
        assert record_sets(each, DEFAULTS) is sets
        assert record_sets(each, Limits(rows=7)) is not sets
        assert topics_of(each) is topics
        assert topics == each.topics
        assert split(each) is waits


def test_an_empty_set_has_nothing() -> None:
    (found,) = record_sets(fetch(1, b"", 1), DEFAULTS)
    assert (found.batches, found.headers, found.sets) == (Batches(), [], [])
