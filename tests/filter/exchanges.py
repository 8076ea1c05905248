"""Exchanges whose every value is known, for filters to choose among."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from typing import Any

from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.kafka import Talk, request, response
from tests.tcp.segments import BROKER

SECOND = 1_000_000_000
START_NS = 1_700_000_000 * SECOND
"""2023-11-14T22:13:20Z; every segment comes a millisecond after the one before."""
ORDERS = (
    Record(0, 1_700_000_000_000, b"u-1", b'{"state": "failed"}', (("traceId", b"abc"), ("none", None))),
    Record(1, 1_700_000_001_000, b"u-2", b"\xff\xfe raw", (("traceId", b"xyz"),)),
)
SECRET = "hunter2"


def _records(*records: Record) -> str:
    return b64encode(write_batch(list(records))).decode()


def _produce(acks: int) -> dict[str, Any]:
    partition = {"index": 3, "records": _records(*ORDERS)}
    topics = [{"name": "orders", "partitionData": [partition]}]
    return {"transactionalId": None, "acks": acks, "timeoutMs": 30_000, "topicData": topics}


def _produced(code: int) -> dict[str, Any]:
    partition = {"index": 3, "errorCode": code, "baseOffset": 100, "logAppendTimeMs": -1, "logStartOffset": 0}
    return {
        "responses": [{"name": "orders", "partitionResponses": [partition]}],
        "throttleTimeMs": 1_500,
    }


def _fetched(index: int, code: int, high_watermark: int) -> dict[str, Any]:
    return {
        "partitionIndex": index,
        "errorCode": code,
        "highWatermark": high_watermark,
        "lastStableOffset": high_watermark,
        "abortedTransactions": None,
        "records": None,
    }


def _fetch() -> tuple[dict[str, Any], dict[str, Any]]:
    wanted = [{"partition": index, "fetchOffset": 5, "partitionMaxBytes": 1_048_576} for index in (0, 7)]
    ask = {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 52_428_800, "isolationLevel": 1}
    answer = [_fetched(0, 0, 1_000), _fetched(7, 6, 2_000)]
    return (
        {**ask, "topics": [{"topic": "Clicks", "partitions": wanted}]},
        {"throttleTimeMs": 0, "responses": [{"topic": "Clicks", "partitions": answer}]},
    )


def _talks() -> list[Talk]:
    fetch, fetched = _fetch()
    config = {"name": "sasl.jaas.config", "value": SECRET}
    topic = {"name": "new", "numPartitions": 2, "replicationFactor": 1, "assignments": []}
    created = {"throttleTimeMs": 0, "topics": [{"name": "new", "errorCode": 36, "errorMessage": "there"}]}
    heartbeat = {"groupId": "connect-etl", "generationId": 4, "memberId": "m"}
    first = (
        Talk(client=bytes((10, 0, 0, 7)) + (40_007).to_bytes(2, "big"), broker=BROKER)
        .ask(request("Produce", 7, 1, "etl-7", **_produce(-1)))
        .answer(response("Produce", 7, 1, **_produced(0)))
        .ask(request("Fetch", 4, 2, "etl-7", **fetch))
        .answer(response("Fetch", 4, 2, **fetched))
        .ask(request("Produce", 7, 3, "etl-7", **_produce(0)))
        .ask(request("Heartbeat", 1, 4, None, **heartbeat))
        .answer(response("Heartbeat", 1, 4, throttleTimeMs=0, errorCode=0))
        .close()
    )
    second = (
        Talk(client=bytes((10, 0, 0, 9)) + (50_112).to_bytes(2, "big"), broker=BROKER)
        .ask(
            request(
                "CreateTopics",
                2,
                1,
                "admin",
                topics=[{**topic, "configs": [config]}],
                timeoutMs=1,
                validateOnly=True,
            )
        )
        .answer(response("CreateTopics", 2, 1, **created))
        .ask(request("Metadata", 1, 2, "admin", topics=[{"name": "orders"}]))
        .close()
    )
    return [first, second]


def exchanges_of(*talks: Talk) -> tuple[Exchange, ...]:
    """The exchanges of conversations, by number."""
    dissector = Dissector()
    events: list[Event] = []
    segments = [segment for talk in talks for segment in talk.segments]
    for number, segment in enumerate(segments, 1):
        moment = START_NS + number * 1_000_000
        events += dissector.feed(segment._replace(packet=number, timestamp_ns=moment))
    events += dissector.close()
    found = [event for event in events if isinstance(event, Exchange)]
    return tuple(sorted(found, key=lambda exchange: exchange.number))


@cache
def known() -> tuple[Exchange, ...]:
    """By number: 1 Produce, 2 Fetch, 3 Produce with acks=0, 4 Heartbeat, 5 CreateTopics, 6 Metadata."""
    return exchanges_of(*_talks())


def stray_fault() -> Fault:
    """A fault that is in no exchange."""
    return Fault("tcp", "gap", "12 bytes: not captured", 9, 100, 1, None)
