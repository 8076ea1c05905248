"""Traffic of topics, against what producers sent and what the broker logged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.record.sets import read_record_set
from tests.acceptance.test_payloads import LOST, PAYLOAD_CASES
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.amount import fewer_again
from tests.analysis.folds import events_of, fold, ids_of, logged, rows_of
from tests.kafka import Talk, request, response
from tests.lab import CLEAR_CASES, Case


@pytest.mark.parametrize("case", fewer_again(PAYLOAD_CASES, 8))
def test_records_produced_are_those_that_the_producers_sent(case: str) -> None:
    """Some clients kept no account of what they sent with acks=0 or in a transaction."""
    sent = Counter(row["topic"] for row in Case(case).payloads() if row["role"] == "produced")
    exchanges = [event for event in events_of(case) if isinstance(event, Exchange) and event.api == "Produce"]
    every = produced(exchanges)
    kept = produced(exchange for exchange in exchanges if not is_aside(exchange))
    lost = LOST.get((case, "produced"), 0)
    for topic, count in sent.items():
        assert count - lost in (every[topic], kept[topic])


def produced(exchanges: Iterable[Exchange]) -> Counter[str]:
    """Records by topic."""
    found: Counter[str] = Counter()
    for row in fold("topics", exchanges).result():
        found[row["topic"]] += row["records"]
        assert row["uncounted_batches"] == row["partial_batches"] == 0
    return found


def is_aside(exchange: Exchange) -> bool:
    assert exchange.request is not None
    body = exchange.request.body()
    return body["acks"] == 0 or body.get("transactionalId") is not None


@pytest.mark.parametrize("case", fewer_again(CLEAR_CASES, 8))
def test_what_headers_announce_is_what_is_there_when_unpacked(case: str) -> None:
    counts: Counter[tuple[str | None, int | None]] = Counter()
    for event in events_of(case):
        if isinstance(event, Exchange) and event.api in ("Produce", "Fetch", "ShareFetch"):
            for place in event.record_sets():
                batches = read_record_set(place.data).batches
                whole = [batch for batch in batches if not batch.partial and not batch.is_control]
                name = place.topic or ids_of(case).get(place.topic_id or "", place.topic_id)
                counts[name, place.partition] += sum(len(batch.records()) for batch in whole)
    found: Counter[tuple[str | None, int | None]] = Counter()
    for row in rows_of("topics", case):
        if row["direction"] != "snapshot":
            found[ids_of(case).get(row["topic"], row["topic"]), row["partition"]] += row["records"]
    assert +found == +counts


@pytest.mark.parametrize("case", fewer_again(PAYLOAD_CASES, 8))
def test_records_fetched_are_no_fewer_than_the_consumers_got(case: str) -> None:
    """A consumer may fetch what it does not give out: what it has, and what another gets too."""
    got = Counter(
        (row["topic"], row["partition"]) for row in Case(case).payloads() if row["role"] == "consumed"
    )
    found = Counter[Any]()
    for row in rows_of("topics", case):
        if row["direction"] in ("fetch", "share"):
            found[row["topic"], row["partition"]] += row["records"]
    assert got
    assert all(found[key] >= count for key, count in got.items())


@pytest.mark.parametrize("case", fewer_again(LOGGED_CASES, 8))
def test_bytes_are_those_that_the_broker_logged(case: str) -> None:
    names = ids_of(case)
    sent, fetched = Counter[Any](), Counter[Any]()
    exchanges = []
    for each, _, exchange in logged(case):
        if exchange.response is None or exchange.response.is_cut or exchange.api not in ("Produce", "Fetch"):
            continue
        exchanges.append(exchange)
        asks = exchange.api == "Produce"
        for topic in each.request["topicData"] if asks else each.response["responses"]:
            name = topic.get("name") or topic.get("topic") or topic["topicId"]
            for partition in topic["partitionData" if asks else "partitions"]:
                number = partition["index" if asks else "partitionIndex"]
                size = partition.get("recordsSizeInBytes", 0)
                (sent if asks else fetched)[names.get(name, name), number] += max(0, size)
    out, back = Counter[Any](), Counter[Any]()
    for row in fold("topics", exchanges).result():
        key = (names.get(row["topic"], row["topic"]), row["partition"])
        assert row["direction"] in ("produce", "fetch", "replicate")
        (out if row["direction"] == "produce" else back)[key] += row["bytes"]
    assert +out == +sent
    assert +back == +fetched


def test_brokers_that_follow_are_no_consumers() -> None:
    directions = {row["direction"] for row in rows_of("topics", "cluster43-combined")}
    assert directions == {"produce", "fetch", "replicate", "share"}


def test_codecs_and_batch_sizes() -> None:
    rows = [row for row in rows_of("topics", "java43-basic") if row["direction"] == "produce"]
    assert {codec for row in rows for codec in row["codecs"]} == {"none", "gzip", "snappy", "lz4", "zstd"}
    for row in rows:
        assert row["batch_bytes_min"] <= row["batch_bytes_mean"] <= row["batch_bytes_max"]
        assert row["batch_bytes_mean"] * row["batches"] <= row["bytes"]


def test_a_name_that_is_told_later_counts_from_the_start() -> None:
    """Fetched by id first, then Metadata names it, then produced by name: one topic."""
    topic_id = "lVhqmGaYRoKUVMnTbJRSXA"
    rows = fold("topics", named_late(topic_id)).result()
    assert [(row["topic"], row["partition"], row["direction"]) for row in rows] == [
        ("orders", 0, "fetch"),
        ("orders", 0, "produce"),
    ]
    first, *rest = named_late(topic_id)
    merged = fold("topics", [first])
    merged.merge(fold("topics", rest[:1]))  # in which the id does not occur: it tells the name
    assert [row["topic"] for row in merged.result()] == ["orders"]
    (row,) = fold("topics", [first]).result()
    assert row["topic"] == topic_id


def named_late(topic_id: str) -> list[Any]:
    partition: dict[str, Any] = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": 1,
        "lastStableOffset": 1,
    }
    partition |= {
        "logStartOffset": 0,
        "abortedTransactions": None,
        "preferredReadReplica": -1,
        "records": "",
    }
    asked: dict[str, Any] = {
        "replicaId": -1,
        "maxWaitMs": 1,
        "minBytes": 1,
        "maxBytes": 1,
        "isolationLevel": 0,
    }
    asked |= {"sessionId": 0, "sessionEpoch": -1, "topics": [], "forgottenTopicsData": [], "rackId": ""}
    topic: dict[str, Any] = {
        "errorCode": 0,
        "name": "orders",
        "topicId": topic_id,
        "isInternal": False,
        "partitions": [],
    }
    topic["topicAuthorizedOperations"] = 0
    talk = Talk().ask(request("Fetch", 13, 1, **asked))
    answer = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0}
    talk.answer(
        response("Fetch", 13, 1, **answer, responses=[{"topicId": topic_id, "partitions": [partition]}])
    )
    talk.ask(
        request(
            "Metadata",
            12,
            2,
            topics=None,
            allowAutoTopicCreation=False,
            includeTopicAuthorizedOperations=False,
        )
    )
    talk.answer(
        response(
            "Metadata", 12, 2, throttleTimeMs=0, brokers=[], clusterId="c", controllerId=1, topics=[topic]
        )
    )
    data = [{"name": "orders", "partitionData": [{"index": 0, "records": ""}]}]
    talk.ask(request("Produce", 8, 3, transactionalId=None, acks=1, timeoutMs=1, topicData=data))
    done: dict[str, Any] = {
        "index": 0,
        "errorCode": 0,
        "baseOffset": 0,
        "logAppendTimeMs": -1,
        "logStartOffset": 0,
    }
    done |= {"recordErrors": [], "errorMessage": None}
    responses = [{"name": "orders", "partitionResponses": [done]}]
    talk.answer(response("Produce", 8, 3, responses=responses, throttleTimeMs=0))
    dissector = Dissector()
    events = [event for segment in talk.close().segments for event in dissector.feed(segment)]
    return [event for event in (*events, *dissector.close()) if isinstance(event, Exchange)]
