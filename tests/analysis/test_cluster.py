"""The model of clusters: what held when, who told it, and what changed."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import (
    ClusterBrokers,
    ClusterChanges,
    ClusterConfigs,
    ClusterPartitions,
    ClusterTopics,
)
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.fold_set import Together
from kdissect.exchange import Exchange
from kdissect.message import parse_response
from kdissect.model import Endpoint, Frame
from kdissect.wording import REDACTED
from tests.analysis.folds import events_of, fold, made, rows_of

CLUSTER = "JmDRag1LQtSxVsWp_vQmxQ"
TOPIC_ID, OTHER_ID = "ewUjRWHKRpegPyS-F2cjZA", "1cBZW0BvQAKdqDj1yV6z5A"
OTHER = bytes((10, 0, 0, 99)) + (19_092).to_bytes(2, "big")


def view(kind: type[Statistic], *exchanges: Exchange) -> list[Row]:
    found = kind()
    for each in exchanges:
        found.feed(each)
    return found.result()


def metadata(
    at_s: float,
    leader: int,
    epoch: int | None = 0,
    isr: tuple[int, ...] = (1, 2),
    brokers: tuple[int, ...] = (1, 2),
    topic_id: str = TOPIC_ID,
    teller: Endpoint | None = None,
    error: int = 0,
) -> Exchange:
    """What Metadata says of the only partition of a topic; of version 5, which has no epoch, without one."""
    version = 12 if epoch is not None else 5
    partition: dict[str, Any] = {
        "errorCode": error,
        "partitionIndex": 0,
        "leaderId": leader,
        "replicaNodes": [1, 2],
        "isrNodes": list(isr),
        "offlineReplicas": [],
    }
    topic: dict[str, Any] = {"errorCode": 0, "name": "orders", "isInternal": False, "partitions": [partition]}
    asked: dict[str, Any] = {"topics": [{"name": "orders"}], "allowAutoTopicCreation": False}
    if epoch is not None:
        partition["leaderEpoch"] = epoch
        topic |= {"topicId": topic_id, "topicAuthorizedOperations": -(1 << 31)}
        asked |= {
            "topics": [{"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}],
            "includeTopicAuthorizedOperations": False,
        }
    told = {
        "throttleTimeMs": 0,
        "brokers": [{"nodeId": each, "host": f"b{each}", "port": 9092, "rack": None} for each in brokers],
        "clusterId": CLUSTER,
        "controllerId": brokers[0] if brokers else -1,
        "topics": [topic],
    }
    ns = int(at_s * SECOND)
    out = made("Metadata", version, asked, told, (ns, ns + 1))
    if teller is not None:
        out.broker_endpoint = teller
    return out


def leaders(*exchanges: Exchange) -> list[tuple[int, int | None]]:
    return [(row["leader"], row["leader_epoch"]) for row in view(ClusterPartitions, *exchanges)]


def changes(*exchanges: Exchange) -> list[tuple[str, str, str | None, str | None]]:
    rows = view(ClusterChanges, *exchanges)
    return [(row["what"], row["subject"], row["before"], row["after"]) for row in rows]


def test_a_leader_holds_from_when_it_was_told_to_when_another_was() -> None:
    one, other = view(ClusterPartitions, metadata(1, 1), metadata(2, 1), metadata(5, 2, epoch=1))
    assert (one["leader"], one["from_ns"], one["to_ns"]) == (1, SECOND + 1, 5 * SECOND + 1)
    assert (other["leader"], other["from_ns"], other["to_ns"]) == (2, 5 * SECOND + 1, None)
    assert (one["told_by"], one["source_exchange"], one["cluster_id"]) == ("Metadata", SECOND, CLUSTER)
    assert (one["preferred"], other["preferred"]) == (True, False)


def test_what_is_said_to_the_letter_after_something_else_is_said_anew() -> None:
    """The same bytes are not read again, but they count from when they came."""
    told = [metadata(1, 1), metadata(2, 1), metadata(3, 2, epoch=1), metadata(4, 1), metadata(5, 1, epoch=2)]
    again = [metadata(6, 1, epoch=2), metadata(7, 1, epoch=2)]
    assert changes(*told) == [("leader-moved", "orders-0", "1", "2"), ("leader-moved", "orders-0", "2", "1")]
    assert changes(*told, *again) == changes(*told)
    rows = view(ClusterPartitions, *told, *again)
    assert [(row["leader"], row["from_ns"] // SECOND) for row in rows] == [(1, 1), (2, 3), (1, 5)]


def test_what_is_told_first_is_no_change() -> None:
    assert changes(metadata(1, 1)) == []


def test_a_broker_that_is_behind_is_not_believed() -> None:
    """It tells an older epoch of the leader, again and again."""
    told = [
        metadata(1, 1),
        metadata(2, 2, epoch=1),
        metadata(3, 1, teller=OTHER),
        metadata(9, 1, teller=OTHER),
    ]
    assert leaders(*told) == [(1, 0), (2, 1)]
    assert changes(*told) == [("leader-moved", "orders-0", "1", "2")]


def test_without_epochs_what_held_before_counts_only_if_it_is_told_for_long() -> None:
    new = metadata(2, 2, epoch=None)
    late = metadata(3, 1, epoch=None, teller=OTHER)
    first = metadata(1, 1, epoch=None)
    assert leaders(first, new, late, metadata(4, 2, epoch=None, teller=OTHER)) == [(1, None), (2, None)]
    assert leaders(first, new, late, metadata(20, 1, epoch=None, teller=OTHER)) == [
        (1, None),
        (2, None),
        (1, None),
    ]


def test_a_partition_without_a_leader_says_so() -> None:
    told = (metadata(1, 1), metadata(2, -1, epoch=1, error=5))
    assert leaders(*told) == [(1, 0), (-1, 1)]
    assert changes(*told)[0] == ("leader-moved", "orders-0", "1", "none")


def test_a_leader_that_one_listener_cannot_reach_is_not_gone() -> None:
    assert leaders(metadata(1, 1), metadata(2, -1, error=72)) == [(1, 0)]


def test_replicas_in_sync_are_not_known_of_a_leader_that_a_refusal_names() -> None:
    refusal = made(
        "Fetch",
        16,
        {
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 1,
            "isolationLevel": 0,
            "sessionId": 0,
            "sessionEpoch": -1,
            "topics": [],
            "forgottenTopicsData": [],
            "rackId": "",
        },
        {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "sessionId": 0,
            "responses": [
                {
                    "topicId": TOPIC_ID,
                    "partitions": [
                        {
                            "partitionIndex": 0,
                            "errorCode": 6,
                            "highWatermark": -1,
                            "lastStableOffset": -1,
                            "logStartOffset": -1,
                            "abortedTransactions": None,
                            "preferredReadReplica": -1,
                            "records": None,
                            "currentLeader": {"leaderId": 2, "leaderEpoch": 1},
                        }
                    ],
                }
            ],
            "nodeEndpoints": [{"nodeId": 2, "host": "b2", "port": 9092, "rack": None}],
        },
        (3 * SECOND, 3 * SECOND + 1),
    )
    told = (metadata(1, 1), refusal, metadata(4, 2, epoch=1, isr=(2,)))
    rows = view(ClusterPartitions, *told)
    assert [(row["leader"], row["isr"]) for row in rows] == [(1, "1,2"), (2, None), (2, "2")]
    assert changes(*told) == [
        ("leader-moved", "orders-0", "1", "2"),
        ("isr-shrunk", "orders-0", "1,2", "2"),
    ]


def test_a_topic_made_anew_begins_anew() -> None:
    told = (metadata(1, 1, epoch=7), metadata(2, 2, epoch=0, topic_id=OTHER_ID), metadata(3, 1, epoch=8))
    assert leaders(*told) == [(1, 7), (2, 0)]  # the last one tells of the topic that is gone
    assert [row["topic_id"] for row in view(ClusterTopics, *told)] == [TOPIC_ID, OTHER_ID]


def replaced(*exchanges: Exchange) -> list[tuple[str | None, str | None]]:
    return [(before, after) for what, _, before, after in changes(*exchanges) if what == "topic-replaced"]


def test_a_topic_of_another_id_replaced_the_former_where_brokers_of_one_cluster_tell_both() -> None:
    """One id may be that of two clusters, if both were started from the same file."""
    one, other, third = (bytes((10, 0, 0, each)) + (9092).to_bytes(2, "big") for each in (1, 2, 3))
    before = metadata(1, 1, teller=one)
    assert replaced(before, metadata(9, 1, topic_id=OTHER_ID, teller=one)) == [(TOPIC_ID, OTHER_ID)]
    # Another broker, that the first one names, too.
    after = metadata(9, 1, topic_id=OTHER_ID, teller=other)
    assert replaced(before, after) == [(TOPIC_ID, OTHER_ID)]
    # Another broker, that nobody names beside the first.
    elsewhere = metadata(9, 1, topic_id=OTHER_ID, teller=third, brokers=(5,))
    assert replaced(before, elsewhere) == []
    # Both go on: two clusters behind one address.
    assert replaced(before, after, metadata(10, 1, teller=one)) == [(TOPIC_ID, OTHER_ID)]
    assert replaced(before, after, metadata(15, 1, teller=one)) == []


def test_when_a_state_was_told_last_is_told() -> None:
    def told(*exchanges: Exchange) -> list[tuple[int, int]]:
        rows = view(ClusterTopics, *exchanges)
        return [(row["from_ns"] // SECOND, row["last_told_ns"] // SECOND) for row in rows]

    assert told(metadata(1, 1), metadata(2, 1), metadata(7, 1)) == [(1, 7)]
    other = metadata(8, 1, topic_id=OTHER_ID)
    assert told(metadata(1, 1), metadata(7, 1), other) == [(1, 7), (8, 8)]
    # A broker that is behind still tells what was before.
    assert told(metadata(1, 1), other, metadata(9, 1), metadata(12, 1)) == [(1, 12), (8, 8)]
    rows = view(ClusterPartitions, metadata(1, 1), metadata(3, 1), metadata(5, 2, epoch=1))
    assert [(row["leader"], row["last_told_ns"] // SECOND) for row in rows] == [(1, 3), (2, 5)]


def test_a_broker_that_vanishes_from_the_lists_of_its_listener_is_gone() -> None:
    told = (metadata(1, 1, brokers=(1, 2)), metadata(4, 2, epoch=1, brokers=(2,), teller=OTHER))
    assert ("broker-gone", "broker 1", None, None) in changes(*told)
    rows = view(ClusterBrokers, *told, metadata(9, 2, epoch=1, brokers=(1, 2)))
    assert [(row["node_id"], row["from_ns"], row["to_ns"]) for row in rows] == [
        (1, SECOND + 1, 4 * SECOND + 1),
        (1, 9 * SECOND + 1, None),
        (2, SECOND + 1, None),
    ]


def test_any_broker_of_kraft_that_metadata_names_as_controller_is_none() -> None:
    told = (metadata(1, 1, brokers=(1, 2)), metadata(2, 1, brokers=(2, 1)))
    assert {row["controller"] for row in view(ClusterBrokers, *told)} == {None}
    assert changes(*told) == []


def offers(at_s: float, level: int, **epoch: int) -> Exchange:
    """An ApiVersions answer of a node for which ``metadata.version`` is at a level."""
    feature = {"name": "metadata.version", "maxVersionLevel": level, "minVersionLevel": level}
    answer = {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0, "finalizedFeatures": [feature], **epoch}
    asked = {"clientSoftwareName": "s", "clientSoftwareVersion": "1"}
    times = round(at_s * SECOND), round(at_s * SECOND) + 1
    return made("ApiVersions", 3, asked, answer, times)


def test_a_node_that_starts_does_not_know_the_features_yet() -> None:
    first = offers(1, 30, finalizedFeaturesEpoch=65)
    assert changes(first, offers(9, 7)) == []
    assert [each[0] for each in changes(first, offers(9, 31, finalizedFeaturesEpoch=0))] == [
        "feature-changed"
    ]


def test_secrets_are_not_kept() -> None:
    altered = made(
        "IncrementalAlterConfigs",
        1,
        {
            "resources": [
                {
                    "resourceType": 4,
                    "resourceName": "1",
                    "configs": [
                        {"name": "ssl.key.password", "configOperation": 0, "value": "moonlight"},
                        {"name": "my.own.plugin", "configOperation": 0, "value": "moonlight"},
                        {"name": "log.retention.ms", "configOperation": 0, "value": "1000"},
                    ],
                }
            ],
            "validateOnly": False,
        },
        {
            "throttleTimeMs": 0,
            "responses": [{"errorCode": 0, "errorMessage": None, "resourceType": 4, "resourceName": "1"}],
        },
    )
    fold = ClusterConfigs()
    fold.feed(altered)
    assert {row["config"]: row["value"] for row in fold.result()} == {
        "ssl.key.password": REDACTED,
        "my.own.plugin": REDACTED,
        "log.retention.ms": "1000",
    }
    assert "moonlight" not in repr(fold.basis._statements._kinds)


def test_what_was_refused_did_not_happen() -> None:
    refused = made(
        "DeleteTopics",
        4,
        {"topicNames": ["orders"], "timeoutMs": 1},
        {"throttleTimeMs": 0, "responses": [{"name": "orders", "errorCode": 29}]},
    )
    assert view(ClusterChanges, metadata(0.1, 1), refused) == []


# -- captures of the lab ------------------------------------------------------------------------------------


def happened(case: str) -> list[tuple[str, str, str | None, str | None, str | None]]:
    rows = rows_of("cluster_changes", case)
    return [(row["what"], row["subject"], row["before"], row["after"], row["by"]) for row in rows]


def test_the_metadata_log_tells_what_nobody_else_does() -> None:
    """A broker is stopped and started again; the shrinking of in-sync replicas is in the log alone."""
    found = happened("cluster43-combined")
    kinds = [what for what, *_ in found]
    assert ("isr-shrunk", "cluster43-combined-2", "3,1,2", "3,1", None) in found
    assert ("leader-moved", "cluster43-combined-s-2", "2", "none", None) in found
    assert ("leader-moved", "cluster43-combined-s-2", "none", "2", None) in found
    assert ("broker-refused", "broker 2", None, "DUPLICATE_BROKER_REGISTRATION", None) in found
    assert ("broker-registered", "broker 2", "16", "189", None) in found
    assert kinds.count("broker-fenced") == 1
    assert kinds.count("controller-moved") == 1


def test_whose_order_it_was_is_told_with_what_came_of_it() -> None:
    found = happened("cluster43-combined")
    admin = "cluster-admin@127.0.0.1"
    assert ("replicas-changed", "cluster43-combined-r-1", "2,3", "1,2,3", admin) in found
    assert ("leader-moved", "cluster43-combined-r-1", "2", "1", admin) in found
    assert ("leader-moved", "cluster43-combined-r-0", "2", "3", None) in found  # the broker stopped
    assert ("topic-created", "topic cluster43-combined", None, None, "producer-none@127.0.0.1") in found


def test_with_zookeeper_the_controller_tells() -> None:
    found = happened("zk39-ibp28")
    assert ("topic-created", "topic magic2", None, None, "rdkafka@127.0.0.1") in found
    assert ("topic-deleted", "topic short-lived", None, None, "rdkafka@127.0.0.1") in found
    assert ("broker-gone", "broker 2", None, None, None) in found
    assert ("leader-moved", "magic2-1", "2", "1", None) in found
    brokers = rows_of("cluster_brokers", "zk39-ibp28")
    assert [(row["node_id"], row["controller"]) for row in brokers] == [(1, True), (2, False)]


def test_who_changed_what_is_told() -> None:
    found = happened("java43-admin")
    by = "admin@127.0.0.1"
    assert ("partitions-added", "topic java43-admin", "3", "5", by) in found
    assert ("config-changed", "topic java43-admin max.message.bytes", "1048588", "5000", by) in found
    assert ("quota-changed", "quota user <default> consumer_byte_rate", None, "50000000", by) in found
    assert ("acl-changed", "allow User:bob Read topic java43-admin*", None, "there", by) in found


def test_an_old_broker_tells_as_much_as_it_can() -> None:
    (row, *_) = rows_of("cluster_brokers", "broker-0.9")
    assert (row["node_id"], row["cluster_id"], row["rack"]) == (1, None, None)


@pytest.mark.parametrize("case", ["java43-basic", "java43-basic-loss", "midstream", "java39-basic"])
def test_a_broker_that_only_works_changes_nothing_but_topics(case: str) -> None:
    assert {what for what, *_ in happened(case)} <= {"topic-created", "topic-deleted", "config-changed"}


def test_parts_of_a_capture_invent_nothing() -> None:
    """With the first third cut off, and of each side alone, nothing is told that the whole does not tell."""
    events = events_of("cluster43-combined")
    whole = {entry[:4] for entry in happened("cluster43-combined")}
    later = ClusterChanges()
    for event in events[len(events) // 3 :]:
        later.feed(event)
    found = {(row["what"], row["subject"], row["before"], row["after"]) for row in later.result()}
    unnamed = {each for each in found - whole if each[1].startswith("z8SHQkXFSa-1SNMbNhrMNQ")}
    assert found - unnamed <= whole
    assert len(found) > len(whole) / 2


def test_tables_of_one_fold_are_fed_once() -> None:
    views = [ClusterBrokers(), ClusterTopics()]
    Together(views)
    assert views[0].basis is views[1].basis


def test_a_list_that_is_cut_tells_of_no_broker_that_is_gone() -> None:
    brokers = [{"nodeId": each, "host": f"b{each}", "port": 9092, "rack": None} for each in (1, 2)]
    answer = {"brokers": brokers, "controllerId": 1, "topics": []}
    whole = made("Metadata", 1, {"topics": []}, answer, (1, 2))
    cut = made("Metadata", 1, {"topics": []}, answer, (3, 4))
    assert cut.response is not None
    for length in range(4, cut.response.frame.size):
        was = cut.response.frame
        frame = Frame(was.direction, 0, was.payload[:length], was.size, 3, 3, 4, 4, (4,))
        short = made("Metadata", 1, {"topics": []}, None, (3, 4))
        assert short.request is not None
        short.response = parse_response(frame, short.request.api_key, short.request.api_version)
        assert [row["what"] for row in fold("cluster_changes", [whole, short]).result()] == []


def test_whoever_is_told_to_shut_down_is_stopping() -> None:
    """The request that asks for it may be cut."""
    beats = [
        made("BrokerHeartbeat", 0, asked, {**answer, "throttleTimeMs": 0, "errorCode": 0}, (at, at + 1))
        for at, asked, answer in (
            (1, BEAT, {"isCaughtUp": True, "isFenced": False, "shouldShutDown": False}),
            (3, BEAT, {"isCaughtUp": True, "isFenced": True, "shouldShutDown": True}),
        )
    ]
    rows = fold("cluster_changes", beats).result()
    assert "broker-stopping" in {row["what"] for row in rows}


BEAT = {
    "brokerId": 2,
    "brokerEpoch": 7,
    "currentMetadataOffset": 9,
    "wantFence": False,
    "wantShutDown": False,
}


def ordered(at_s: float, leader: int, epoch: int, isr: tuple[int, ...]) -> Exchange:
    """What a controller with ZooKeeper tells brokers of the only partition of a topic."""
    partition: Row = {"partitionIndex": 0, "controllerEpoch": 1, "leader": leader, "leaderEpoch": epoch}
    partition |= {"isr": list(isr), "zkVersion": epoch, "replicas": [1, 2], "offlineReplicas": []}
    asked: Row = {"controllerId": 3, "controllerEpoch": 1, "brokerEpoch": 5, "liveBrokers": []}
    asked |= {"topicStates": [{"topicName": "orders", "partitionStates": [partition]}]}
    return made("UpdateMetadata", 6, asked, {"errorCode": 0}, (int(at_s * SECOND), int(at_s * SECOND)))


@pytest.mark.parametrize(
    ("events", "unclean"),
    [
        ([ordered(1, 1, 0, (1,)), ordered(2, 2, 1, (2,))], False),  # it may have come back in sync
        ([ordered(1, 1, 0, (1,)), ordered(2, -1, 1, (1,)), ordered(3, 2, 2, (2,))], True),
        ([ordered(1, 1, 0, (1, 2)), ordered(2, 2, 1, (2,))], False),
        ([ordered(1, 1, 0, (1,)), ordered(2, -1, 1, (1,))], False),
        (
            [metadata(1, 1, 0, (1,)), metadata(2, 2, 1, (2,))],
            False,
        ),  # it may have been in sync between the two
    ],
)
def test_a_controller_with_zookeeper_elects_a_replica_that_was_not_in_sync(
    events: list[Exchange], unclean: bool
) -> None:
    found = [row["what"] for row in view(ClusterChanges, *events)]
    assert ("unclean-election" in found) is unclean
