"""Exchanges of producers, consumers and followers, made here: topic ``orders``, partition 0, times in ms."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from kdissect.analysis.fold import MILLISECOND
from kdissect.exchange import Exchange
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.folds import made

TOPIC = "orders"


def batch(base: int, stamps: Sequence[int], codec: int = 0) -> bytes:
    """A batch whose records have these timestamps, ms."""
    records = [Record(base + at, ms, None, b"v", (), -1) for at, ms in enumerate(stamps)]
    return write_batch(records, codec)


def produce(
    at: tuple[float, float],
    base: int,
    stamps: Sequence[int],
    *,
    connection: int = 1,
    error: int = 0,
    answered: bool = True,
    codec: int = 0,
) -> Exchange:
    """A Produce of one batch; ``base`` is the offset that it is given."""
    data = b64encode(batch(0, stamps, codec)).decode()
    asked = {"transactionalId": None, "acks": -1, "timeoutMs": 1000}
    asked["topicData"] = [{"name": TOPIC, "partitionData": [{"index": 0, "records": data}]}]  # type: ignore[assignment]
    told = {
        "index": 0,
        "errorCode": error,
        "baseOffset": -1 if error else base,
        "logAppendTimeMs": -1,
        "logStartOffset": 0,
        "recordErrors": [],
        "errorMessage": None,
    }
    answer = {"responses": [{"name": TOPIC, "partitionResponses": [told]}], "throttleTimeMs": 0}
    found = made("Produce", 9, asked, answer if answered else None, _ns(at), connection)
    if not answered:
        found.missing = "gap"
    return found


def fetch(
    at: tuple[float, float],
    offset: int | None,
    sets: Sequence[tuple[int, Sequence[int]]] = (),
    high: int = -1,
    *,
    connection: int = 2,
    replica: int = -1,
    answered: bool = True,
    epoch: int = 1,
) -> Exchange:
    """A Fetch in a session; ``offset`` is what it names, ``sets`` are base offsets and timestamps."""
    asked = {"replicaId": replica, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0}
    asked |= {"sessionId": 7, "sessionEpoch": epoch, "forgottenTopicsData": [], "rackId": ""}  # type: ignore[dict-item]
    partition = {
        "partition": 0,
        "currentLeaderEpoch": -1,
        "fetchOffset": offset,
        "lastFetchedEpoch": -1,
        "logStartOffset": -1,
        "partitionMaxBytes": 1,
    }
    asked["topics"] = [{"topic": TOPIC, "partitions": [partition]}] if offset is not None else []  # type: ignore[assignment]
    told = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": high,
        "lastStableOffset": high,
        "logStartOffset": 0,
        "abortedTransactions": None,
        "preferredReadReplica": -1,
        "records": b64encode(b"".join(batch(*each) for each in sets)).decode(),
    }
    news = [{"topic": TOPIC, "partitions": [told]}] if sets or high >= 0 else []
    answer = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 7, "responses": news}
    found = made("Fetch", 12, asked, answer if answered else None, _ns(at), connection)
    if not answered:
        found.missing = "gap"
    return found


def commit(at: tuple[float, float], offset: int, *, group: str = "readers", error: int = 0) -> Exchange:
    """An OffsetCommit."""
    partition = {"partitionIndex": 0, "committedOffset": offset, "committedLeaderEpoch": -1}
    partition["committedMetadata"] = ""  # type: ignore[assignment]
    asked = {"groupId": group, "generationIdOrMemberEpoch": 1, "memberId": "m", "groupInstanceId": None}
    asked["topics"] = [{"name": TOPIC, "partitions": [partition]}]
    told = [{"name": TOPIC, "partitions": [{"partitionIndex": 0, "errorCode": error}]}]
    return made("OffsetCommit", 8, asked, {"throttleTimeMs": 0, "topics": told}, _ns(at), 3)


def transaction_commit(at: tuple[float, float], offset: int, *, group: str = "readers") -> Exchange:
    """A TxnOffsetCommit of transactional id ``tx``."""
    partition = {"partitionIndex": 0, "committedOffset": offset, "committedLeaderEpoch": -1}
    partition["committedMetadata"] = ""  # type: ignore[assignment]
    asked = {"transactionalId": "tx", "groupId": group, "producerId": 5, "producerEpoch": 0}
    asked |= {"generationIdOrMemberEpoch": 1, "memberId": "m", "groupInstanceId": None}
    asked["topics"] = [{"name": TOPIC, "partitions": [partition]}]
    told = [{"name": TOPIC, "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]
    return made("TxnOffsetCommit", 3, asked, {"throttleTimeMs": 0, "topics": told}, _ns(at), 3)


def end_transaction(at: tuple[float, float], committed: bool) -> Exchange:
    """An EndTxn of transactional id ``tx``."""
    asked = {"transactionalId": "tx", "producerId": 5, "producerEpoch": 0, "committed": committed}
    return made("EndTxn", 3, asked, {"throttleTimeMs": 0, "errorCode": 0}, _ns(at), 3)


def asked_offsets(at: tuple[float, float], *offsets: int, group: str = "readers", error: int = 0) -> Exchange:
    """An answer to OffsetFetch, of partitions from 0 on."""
    ask = {"groupId": group, "topics": None}
    partitions = [
        {"partitionIndex": number, "committedOffset": offset, "committedLeaderEpoch": -1, "metadata": ""}
        | {"errorCode": 0}
        for number, offset in enumerate(offsets)
    ]
    answer = {"groupId": group, "topics": [{"name": TOPIC, "partitions": partitions}], "errorCode": error}
    return made(
        "OffsetFetch",
        8,
        {"groups": [ask], "requireStable": False},
        {"throttleTimeMs": 0, "groups": [answer]},
        _ns(at),
    )


def _ns(at: tuple[float, float]) -> tuple[int, int]:
    return int(at[0] * MILLISECOND), int(at[1] * MILLISECOND)
