"""Exchanges of producers, made here: batches, transactions."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from kdissect.exchange import Exchange
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.folds import made

MS = 1_000_000
START_MS = 1_700_000_000_000


def records(*values: str, at_ms: int = START_MS) -> list[Record]:
    return [
        Record(offset=at, timestamp=at_ms, key=None, value=value.encode()) for at, value in enumerate(values)
    ]


def produce(
    ms: int,
    data: bytes,
    offset: int | None = 0,
    error: int = 0,
    connection: int = 0,
    answered_ms: int | None = None,
    acks: int = -1,
    topic: str = "t",
    transactional_id: str | None = None,
    version: int = 9,
) -> Exchange:
    """A Produce of one partition, ``ms`` after the start; without ``offset`` and ``error`` unanswered."""
    asked: dict[str, Any] = {
        "transactionalId": transactional_id,
        "acks": acks,
        "timeoutMs": 1000,
        "topicData": [{"name": topic, "partitionData": [{"index": 0, "records": b64encode(data).decode()}]}],
    }
    part: dict[str, Any] = {"index": 0, "errorCode": error, "baseOffset": -1 if error else offset}
    part |= {"logAppendTimeMs": -1, "logStartOffset": 0, "recordErrors": [], "errorMessage": None}
    answered = {"responses": [{"name": topic, "partitionResponses": [part]}], "throttleTimeMs": 0}
    is_answered = error != 0 or offset is not None
    out = exchange("Produce", version, asked, answered if is_answered else None, ms, answered_ms, connection)
    if not is_answered:
        out.missing = "acks=0" if acks == 0 else "connection closed"
    return out


def exchange(
    api: str,
    version: int,
    asked: dict[str, Any],
    answered: dict[str, Any] | None,
    ms: int,
    answered_ms: int | None = None,
    connection: int = 0,
) -> Exchange:
    asked_ns = (START_MS + ms) * MS
    answered_ns = (START_MS + (ms + 1 if answered_ms is None else answered_ms)) * MS
    out = made(api, version, asked, answered, (asked_ns, answered_ns), connection)
    out.number = ms + 1
    return out


def batch(*values: str, at_ms: int = START_MS, **more: Any) -> bytes:
    return write_batch(records(*values, at_ms=at_ms), **more)


def fetch(
    ms: int,
    data: bytes,
    high: int,
    stable: int | None = None,
    topic: str = "t",
    aborted: Any = None,
    isolation: int = 1,
) -> Exchange:
    """A consumer's Fetch of one partition."""
    part = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": high,
        "lastStableOffset": high if stable is None else stable,
        "abortedTransactions": aborted,
        "records": b64encode(data).decode(),
    }
    asked: dict[str, Any] = {"replicaId": -1, "maxWaitMs": 5, "minBytes": 1, "maxBytes": 9, "topics": []}
    asked["isolationLevel"] = isolation
    answered = {"throttleTimeMs": 0, "responses": [{"topic": topic, "partitions": [part]}]}
    return exchange("Fetch", 4, asked, answered, ms)
