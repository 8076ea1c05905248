"""Record sets of an exchange, found once for all that are fed it."""

from __future__ import annotations

from kdissect.analysis.batches import Batches
from kdissect.analysis.headers import headers, sets_of
from kdissect.analysis.shared_parts import (
    SharedParts,
    answer_bytes,
    by_api,
    error_class_of,
    errors_of,
    follows_log,
    latest_in,
    of_api_keys,
    produced_ends,
    record_sets,
    topics_of,
)
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import METADATA_TOPIC
from tests.analysis.folds import made
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


def test_a_produced_set_ends_after_the_records_of_all_its_batches() -> None:
    exchange = produce(0, batch("a", "b") + batch("c"), 40)
    ((place, end),) = produced_ends(exchange, DEFAULTS)
    assert (place.topic, place.partition, end) == ("t", 0, 43)
    for without in (produce(0, batch("a"), None), produce(0, batch("a"), error=7), fetch(1, batch("a"), 1)):
        assert produced_ends(without, DEFAULTS) == []


def test_the_offset_of_a_produced_set_is_looked_up_once() -> None:
    exchange, later = produce(0, batch("a"), 40), produce(0, batch("a"), 50)
    (found,) = record_sets(exchange, DEFAULTS)
    assert found.assigned_offset(exchange) == exchange.assigned_base_offset(found.place) == 40
    assert found.assigned_offset(later) == 40
    for without in (produce(0, batch("a"), None), fetch(1, batch("a"), 1)):
        (found,) = record_sets(without, DEFAULTS)
        assert [found.assigned_offset(without) for _ in range(2)] == [None, None]


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


def fetched(*topics: str, answered: bool = True, error: int = 0) -> Exchange:
    """A Fetch of these topics."""
    asked = {"replicaId": 1, "maxWaitMs": 500, "minBytes": 0, "maxBytes": 1, "isolationLevel": 0}
    asked |= {"sessionId": 0, "sessionEpoch": -1, "forgottenTopicsData": [], "rackId": ""}  # type: ignore[dict-item]
    place = {"partition": 3, "currentLeaderEpoch": 1, "fetchOffset": 7, "lastFetchedEpoch": 1}
    place |= {"logStartOffset": -1, "partitionMaxBytes": 1}
    told = {"partitionIndex": 3, "errorCode": error, "highWatermark": 7, "lastStableOffset": 7}
    told |= {"logStartOffset": 0, "abortedTransactions": None, "preferredReadReplica": -1, "records": ""}  # type: ignore[dict-item]
    asked["topics"] = [{"topic": name, "partitions": [place]} for name in topics]  # type: ignore[assignment]
    news = [{"topic": name, "partitions": [told]} for name in topics]
    answer = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": news}
    return made("Fetch", 12, asked, answer if answered else None, (1, 2))


def test_only_a_fetch_of_the_metadata_log_alone_follows_it() -> None:
    assert follows_log(fetched(METADATA_TOPIC))
    assert not follows_log(fetched("orders"))
    assert not follows_log(fetched(METADATA_TOPIC, "orders"))
    assert not follows_log(fetched())
    assert not follows_log(fetched(METADATA_TOPIC, answered=False))
    assert not follows_log(produce(0, batch("a")))


def test_errors_are_found_once_with_what_they_are_about() -> None:
    exchange = fetched("orders", error=6)
    exchange.shared = SharedParts()
    (found,) = errors_of(exchange)
    assert (found.code, found.topic, found.topic_id, found.partition) == (6, "orders", None, 3)
    assert found.grave == error_class_of(exchange) == exchange.error_class == "retriable"
    assert [(each.code, each.ancestors) for each in errors_of(exchange)] == list(exchange.error_codes())
    assert errors_of(exchange) is errors_of(exchange)
    assert errors_of(fetched("orders")) == []
    assert exchange.response is not None
    assert answer_bytes(exchange, exchange.response) is answer_bytes(exchange, exchange.response)


def test_places_are_found_for_each_api_and_for_exchanges_with_a_missing_message() -> None:
    asked = {"groupId": "g", "generationId": 1, "memberId": "m"}
    told = made("Heartbeat", 0, asked, {"errorCode": 0}, (0, 1))
    alone = fetch(1, batch("a"), 1)
    alone.missing = "gap"
    unknown = produce(0, batch("a"))
    unknown.request = None
    assert unknown.response is not None
    unknown.response.api_key = unknown.response._layout = None
    found = by_api([produce(0, batch("a")), told, alone, produce(1, batch("b")), unknown])
    assert found == {"Produce": [0, 3], "Heartbeat": [1], None: [2], "": [4]}


def test_the_last_packet_and_the_latest_end_may_be_of_different_exchanges() -> None:
    first, late, last = (fetch(at, batch("a"), 1) for at in (1, 9, 2))
    for packet, each in enumerate((first, late, last), 5):
        assert each.request is not None
        assert each.response is not None
        each.request.frame.last_packet, each.response.frame.last_packet = 1, packet
    assert latest_in([first, late, last], 0, 0) == (last, late.ended_ns)
    assert latest_in([first, late, last], 8, late.ended_ns + 1) == (None, late.ended_ns + 1)
    assert late.response is not None
    late.response.frame.last_packet = 7
    assert latest_in([last, late], 7, 0)[0] is late  # of equal packets, the last exchange counts
    late.response = None
    assert latest_in([late], 0, 0)[1] == late.ended_ns


def test_exchanges_are_chosen_by_the_keys_of_their_apis() -> None:
    exchanges = [produce(0, batch("a")), fetch(1, batch("a"), 1), produce(1, batch("b"))]
    assert of_api_keys(exchanges, (0, 3)) == [exchanges[0], exchanges[2]]
