"""Topics, groups, producers and transactions of two clusters that have one name have rows of their own."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.exchange import Exchange
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.folds import fold, rows_of_parts
from tests.analysis.produced import MS, START_MS, exchange
from tests.analysis.test_clusters import EAST, WEST, metadata, place
from tests.analysis.test_transactions import add, end, init, write

TABLES = ("transactions", "topics", "producers", "delivery", "share", "positions", "graph")
HOSTS = {EAST: "10.0.0.1", WEST: "10.9.0.1"}
SECOND_HOSTS = {EAST: "10.0.0.2", WEST: "10.9.0.2"}
TOPIC_ID = "lVhqmGaYRoKUVMnTbJRSXA"
BASES = {EAST: 100, WEST: 5_000}


def fetched(ms: int, base: int, values: int, stable: int, high: int) -> Exchange:
    """A consumer is given records from an offset on."""
    records = [Record(base + at, START_MS, None, b"v", (), -1) for at in range(values)]
    data = write_batch(records, producer_id=7, base_sequence=0, transactional=True) if values else b""
    part: dict[str, Any] = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": high,
        "lastStableOffset": stable,
    }
    part |= {"abortedTransactions": None, "records": b64encode(data).decode()}
    wanted = [{"partition": 0, "fetchOffset": base, "partitionMaxBytes": 1}]
    asked: dict[str, Any] = {
        "replicaId": -1,
        "maxWaitMs": 5,
        "minBytes": 1,
        "maxBytes": 9,
        "isolationLevel": 1,
    }
    asked |= {"topics": [{"topic": "t", "partitions": wanted}]}
    answer = {"throttleTimeMs": 0, "responses": [{"topic": "t", "partitions": [part]}]}
    return exchange("Fetch", 4, asked, answer, ms)


def shared(ms: int, base: int | None, said: int | None = None) -> Exchange:
    """A member of a share group is given a record, or accepts one."""
    accepted = [] if said is None else [{"firstOffset": said, "lastOffset": said, "acknowledgeTypes": [1]}]
    given = [] if base is None else [{"firstOffset": base, "lastOffset": base, "deliveryCount": 1}]
    asked: dict[str, Any] = {"groupId": "jobs", "memberId": "m", "shareSessionEpoch": 1, "maxWaitMs": 5}
    asked |= {"minBytes": 1, "maxBytes": 1, "maxRecords": 1, "batchSize": 1, "forgottenTopicsData": []}
    partition: dict[str, Any] = {"partitionIndex": 0, "acknowledgementBatches": accepted}
    asked |= {"topics": [{"topicId": TOPIC_ID, "partitions": [partition]}]}
    told: dict[str, Any] = {"partitionIndex": 0, "errorCode": 0, "errorMessage": None, "records": None}
    told |= {"acknowledgeErrorCode": 0, "acknowledgeErrorMessage": None, "acquiredRecords": given}
    told |= {"currentLeader": {"leaderId": 1, "leaderEpoch": 0}}
    answer: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None}
    answer |= {"acquisitionLockTimeoutMs": 1_000, "nodeEndpoints": []}
    answer |= {"responses": [{"topicId": TOPIC_ID, "partitions": [told]}]}
    return exchange("ShareFetch", 1, asked, answer, ms)


def traffic(cluster: str) -> list[Exchange]:
    """A transaction, its records and who reads them; both clusters use the same names, ids and clients."""
    base, late, is_east = BASES[cluster], 1 if cluster == WEST else 0, cluster == EAST
    values = ("a", "b") if is_east else ("a", "b", "c", "d")
    leader = [
        metadata(cluster, HOSTS[cluster], SECOND_HOSTS[cluster], at_ms=START_MS),
        write(12, *values, offset=base),
        fetched(30, base, len(values), base, base + 40),
        fetched(3_030, base + len(values), 0, base, base + 40),
        fetched(5_030, base + len(values), 0, base + 50, base + 50),
    ]
    leader += [shared(40, base), shared(50, None, said=base)]
    coordinator = [init(0), add(10), end(5_000, committed=is_east)]
    for host, exchanges in ((HOSTS[cluster], leader), (SECOND_HOSTS[cluster], coordinator)):
        for each in exchanges:
            each.broker_endpoint, each._broker = place(host), None
            each.connection = each.connection * 2 + late
            each.number = each.number * 2 + late
    return sorted((*leader, *coordinator), key=lambda each: each.begun_ns)


def both() -> list[Exchange]:
    return sorted((*traffic(EAST), *traffic(WEST)), key=lambda each: (each.ended_ns, each.number))


def rows(name: str, events: list[Exchange]) -> list[Row]:
    return fold(name, events).result()


@pytest.mark.parametrize("cluster", [EAST, WEST])
@pytest.mark.parametrize("name", TABLES)
def test_each_cluster_has_the_rows_that_it_has_alone(name: str, cluster: str) -> None:
    found = [row for row in rows(name, both()) if row["cluster_id"] == cluster]
    assert found
    assert found == rows(name, traffic(cluster))
    assert {row["cluster_id"] for row in rows(name, both())} == {EAST, WEST}


@pytest.mark.parametrize("name", TABLES)
def test_the_rows_are_the_same_however_the_capture_is_cut(name: str) -> None:
    whole = rows(name, both())
    assert all(found == whole for found in rows_of_parts(name, both()))


@pytest.mark.parametrize("name", TABLES)
def test_what_is_unknown_is_not_told_apart(name: str) -> None:
    events = [each for each in both() if each.api != "Metadata"]
    found = rows(name, events)
    assert {row["cluster_id"] for row in found} == {None}


@pytest.mark.parametrize("name", TABLES)
def test_a_broker_of_which_nothing_is_known_splits_nothing(name: str) -> None:
    """The cluster is one, though the leader or the coordinator tells no id."""
    events = traffic(EAST)
    alone = rows(name, events)
    (told,) = [each for each in events if each.api == "Metadata"]
    for host in (HOSTS[EAST], "10.5.0.1"):
        short = metadata(EAST, host, at_ms=START_MS)
        short.broker_endpoint, short._broker = place(host), None
        again = [short if each is told else each for each in events]
        assert rows(name, again) == alone


def test_transactions_end_as_in_their_own_cluster() -> None:
    found = {row["cluster_id"]: row for row in rows("transactions", both())}
    assert (found[EAST]["outcome"], found[WEST]["outcome"]) == ("committed", "aborted")
    assert (found[EAST]["records"], found[WEST]["records"]) == (2, 4)
    assert [row["held_ns"] for row in found.values()] == [3_000 * MS] * 2
    assert [row["held_offsets"] for row in found.values()] == [40] * 2
