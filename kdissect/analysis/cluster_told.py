"""An exchange → what it says of the cluster: brokers, controllers, topics, partitions.

Configurations, quotas, features and permissions: :mod:`kdissect.analysis.cluster_settings`. Records of
``__cluster_metadata``: :mod:`kdissect.analysis.metadata_log`.

In a cluster of KRaft, Metadata and DescribeCluster name any broker as the controller
(``KRaftMetadataCache``), which says nothing. Vote, BeginQuorumEpoch, DescribeQuorum and refused Fetches of
``__cluster_metadata`` tell who leads the quorum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from kdissect.analysis.cluster_settings import SETTINGS, accepted
from kdissect.analysis.labels import Labels
from kdissect.analysis.statements import Statement, fields, who
from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.names import is_metadata_topic

Told = Iterator[Statement]
Body = dict[str, Any]

NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
DELETED = -2
"""``LeaderAndIsr.LEADER_DURING_DELETE`` and ``EPOCH_DURING_DELETE``, with ZooKeeper."""
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND, DUPLICATE_REGISTRATION = 3, 5, 72, 101
LED = ("Fetch", "Produce", "ShareFetch", "ShareAcknowledge")
"""What only leaders answer; others say who leads."""
NOT_LEADER = ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")
_RAFT_CLIENT = re.compile(r"raft-client-(\d{1,9})")
"""The client id of a node of KRaft that asks controllers (``KafkaRaftManager``)."""


def told(exchange: Exchange, labels: Labels) -> Told:
    """What an exchange says."""
    api = exchange.api or ""
    if api in LED:
        if exchange.error in NOT_LEADER:
            yield from _refused(exchange, labels)
        return
    settings = SETTINGS.get(api)
    if settings is not None and exchange.request is not None and exchange.response is not None:
        yield from settings(exchange, exchange.request.body(), exchange.response.body())
    tell = _TELLERS.get(api)
    if tell is not None:
        yield from tell(exchange, labels)


def topics_told(exchange: Exchange, labels: Labels) -> Told:
    """What an exchange says of topics, without their partitions."""
    if exchange.api != "Metadata":
        yield from (each for each in told(exchange, labels) if each.kind == "topic")
        return
    for topic in response_of(exchange).get("topics") or ():
        yield from takewhile(lambda each: each.kind == "topic", _topic(exchange, topic, labels, True, False))


def request_of(exchange: Exchange) -> Body:
    """The body of the request; empty without one."""
    return exchange.request.body() if exchange.request is not None else {}


def response_of(exchange: Exchange) -> Body:
    """The body of the response; empty without one."""
    return exchange.response.body() if exchange.response is not None else {}


def partition_fields(
    partition: Body,
    leader: str = "leaderId",
    replicas: str = "replicaNodes",
    isr: str = "isrNodes",
    offline: str = "offlineReplicas",
    topic_id: str | None = None,
) -> tuple[tuple[str, Any], ...]:
    """What a struct says of a partition, whose fields have other names in each message."""
    epoch = partition.get("leaderEpoch", -1)
    return fields(
        topic_id=topic_id,
        leader=partition.get(leader),
        leader_epoch=epoch if epoch >= 0 else None,
        partition_epoch=partition.get("partitionEpoch"),
        replicas=ids(partition.get(replicas)),
        isr=ids(partition.get(isr)),
        elr=ids(partition.get("eligibleLeaderReplicas")),
        offline=ids(partition.get(offline)),
        recovering=True if partition.get("leaderRecoveryState") == 1 else None,
    )


def ids(nodes: Any) -> tuple[int, ...] | None:
    """Node ids of a list; None where it is not told."""
    return None if nodes is None else tuple(nodes)


def real_id(topic_id: str | None) -> str | None:
    """A topic id; None for the one that stands for none."""
    return topic_id if topic_id and topic_id != NO_TOPIC_ID else None


# -- what clients are told --------------------------------------------------------------------------------


def _metadata(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    yield from _brokers(response, "nodeId", is_listing=not _is_cut(exchange.response))
    if response.get("controllerId", -1) >= 0:
        yield Statement("named-controller", (), fields(id=response["controllerId"]))
    creates = request.get("allowAutoTopicCreation", True) if exchange.request is not None else False
    for topic in response.get("topics") or ():
        yield from _topic(exchange, topic, labels, True, creates)


def _described_topics(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    is_whole = response.get("nextCursor") is None and request.get("cursor") is None
    for topic in response.get("topics") or ():
        yield from _topic(exchange, topic, labels, is_whole, False)


def _topic(exchange: Exchange, topic: Body, labels: Labels, is_whole: bool, creates: bool) -> Told:
    name, topic_id = topic.get("name"), real_id(topic.get("topicId"))
    if not name and not topic_id:
        return
    label = labels.topic(name, None) if name else labels.topic(None, topic_id)
    partitions = topic.get("partitions") or ()
    if topic.get("errorCode") in (UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE) and not partitions and name:
        by = who(exchange) if creates else None
        yield Statement("topic", (label,), fields(is_there=False, is_asked_for=creates), by)
    if not partitions:
        return
    yield Statement(
        "topic",
        (label,),
        fields(
            is_there=True,
            topic_id=topic_id,
            internal=topic.get("isInternal"),
            partitions=len(partitions) if is_whole else None,
            replication=max(len(each.get("replicaNodes") or ()) for each in partitions),
        ),
    )
    for each in partitions:
        found = partition_fields(each, topic_id=topic_id)
        if each.get("errorCode") == LISTENER_NOT_FOUND:  # the leader is there, and this listener not
            found = tuple(pair for pair in found if pair[0] != "leader")
        yield Statement("partition", (label, each.get("partitionIndex")), found)


def _brokers(response: Body, id_name: str, listed: str = "brokers", is_listing: bool = True) -> Told:
    brokers = response.get(listed) or ()
    if response.get("clusterId"):
        yield Statement("cluster", (), fields(id=response["clusterId"]))
    places = []
    for each in brokers:
        if each.get("port") is not None:  # else the message breaks off before it
            place = each.get(id_name, -1), each.get("host") or "", each["port"]
            places.append(place)
            yield Statement("endpoint", place, fields(rack=each.get("rack")))
    if brokers and is_listing:
        yield Statement("listing", (), fields(nodes=tuple(sorted(places))))


def _is_cut(message: Message | None) -> bool:
    """Whether lists in a message may lack their end."""
    return message is not None and message.is_cut


def _described_cluster(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    if response.get("errorCode"):
        return
    is_of_controllers = response.get("endpointType") == 2
    has_fenced = bool(request.get("includeFencedBrokers"))
    is_listing = not has_fenced and not is_of_controllers and not _is_cut(exchange.response)
    yield from _brokers(response, "brokerId", is_listing=is_listing)
    if has_fenced:
        for each in response.get("brokers") or ():
            yield Statement("node", (each.get("brokerId"),), fields(fenced=each.get("isFenced")))
    if response.get("controllerId", -1) >= 0:
        kind = "controller" if is_of_controllers else "named-controller"
        yield Statement(kind, (), fields(id=response["controllerId"]))


def _coordinator(exchange: Exchange, labels: Labels) -> Told:
    response = response_of(exchange)
    for each in (*(response.get("coordinators") or ()), response):
        if not each.get("errorCode") and each.get("nodeId", -1) >= 0 and each.get("host"):
            yield Statement("endpoint", (each["nodeId"], each["host"], each.get("port")), ())


def _refused(exchange: Exchange, labels: Labels) -> Told:
    """Who leads instead (KIP-951)."""
    response = response_of(exchange)
    for topic in response.get("responses") or ():
        name, topic_id = topic.get("name") or topic.get("topic"), real_id(topic.get("topicId"))
        label = labels.topic(name, None if name else topic_id)
        for each in (*(topic.get("partitions") or ()), *(topic.get("partitionResponses") or ())):
            leader = each.get("currentLeader") or {}
            if leader.get("leaderEpoch", -1) < 0 or leader.get("leaderId", -1) < 0:
                continue
            if is_metadata_topic(name, topic_id):
                yield _controller(leader)
            else:
                index = each.get("partitionIndex", each.get("index"))
                yield Statement("partition", (label, index), partition_fields(leader, topic_id=topic_id))
    for node in response.get("nodeEndpoints") or ():
        yield Statement(
            "endpoint",
            (node.get("nodeId"), node.get("host"), node.get("port")),
            fields(rack=node.get("rack")),
        )


def _offers(exchange: Exchange, labels: Labels) -> Told:
    """A broker with ZooKeeper offers what controllers of that era ask; a node of KRaft says what it is."""
    request, response = request_of(exchange), response_of(exchange)
    keys = [each.get("apiKey") for each in response.get("apiKeys") or ()]
    if keys:
        yield Statement("offers", (), fields(has_zookeeper=6 in keys))  # UpdateMetadata
    node = _RAFT_CLIENT.fullmatch(exchange.client_id or "")
    if node is not None and request.get("clientSoftwareName") == "apache-kafka-java":
        version = request.get("clientSoftwareVersion")
        yield Statement("node", (int(node[1]),), fields(software=f"Apache Kafka {version}"))


# -- topics that are made and deleted ---------------------------------------------------------------------


def _created(exchange: Exchange, labels: Labels) -> Told:
    if request_of(exchange).get("validateOnly"):
        return
    for topic in response_of(exchange).get("topics") or ():
        if topic.get("errorCode") == 0 and topic.get("name"):
            partitions, replication = topic.get("numPartitions", -1), topic.get("replicationFactor", -1)
            found = fields(
                is_there=True,
                is_made=True,
                topic_id=real_id(topic.get("topicId")),
                partitions=partitions if partitions > 0 else None,
                replication=replication if replication > 0 else None,
            )
            yield Statement("topic", (labels.topic(topic["name"], None),), found, who(exchange))


def _deleted(exchange: Exchange, labels: Labels) -> Told:
    for topic in response_of(exchange).get("responses") or ():
        name, topic_id = topic.get("name"), real_id(topic.get("topicId"))
        if topic.get("errorCode") == 0 and (name or topic_id):
            label = labels.topic(name, None if name else topic_id)
            yield Statement("topic", (label,), fields(is_there=False, is_deleted=True), who(exchange))


def _more_partitions(exchange: Exchange, labels: Labels) -> Told:
    request = request_of(exchange)
    if request.get("validateOnly"):
        return
    asked = {topic.get("name"): topic.get("count") for topic in request.get("topics") or ()}
    for topic in response_of(exchange).get("results") or ():
        if topic.get("errorCode") == 0 and asked.get(topic.get("name")):
            label = labels.topic(topic["name"], None)
            yield Statement(
                "topic", (label,), fields(is_there=True, partitions=asked[topic["name"]]), who(exchange)
            )


def _elected(exchange: Exchange, labels: Labels) -> Told:
    for topic in response_of(exchange).get("replicaElectionResults") or ():
        for each in topic.get("partitionResult") or ():
            if each.get("errorCode") == 0:
                label = labels.topic(topic.get("topic"), None)
                yield Statement(
                    "order", (label, each.get("partitionId")), fields(what="ElectLeaders"), who(exchange)
                )


def _reassigned(exchange: Exchange, labels: Labels) -> Told:
    for topic in response_of(exchange).get("responses") or ():
        for each in topic.get("partitions") or ():
            if each.get("errorCode") == 0:
                label = labels.topic(topic.get("name"), None)
                what = fields(what="AlterPartitionReassignments")
                yield Statement("order", (label, each.get("partitionIndex")), what, who(exchange))


# -- what brokers and controllers tell each other ----------------------------------------------------------


def _isr_altered(exchange: Exchange, labels: Labels) -> Told:
    by = f"broker {request_of(exchange).get('brokerId')}"
    for topic in response_of(exchange).get("topics") or ():
        name, topic_id = topic.get("topicName") or topic.get("name"), real_id(topic.get("topicId"))
        label = labels.topic(name, None if name else topic_id)
        for each in topic.get("partitions") or ():
            if each.get("errorCode") == 0:
                found = partition_fields(each, isr="isr", topic_id=topic_id)
                yield Statement("partition", (label, each.get("partitionIndex")), found, by)


def _states(exchange: Exchange, labels: Labels) -> Told:
    """LeaderAndIsr, UpdateMetadata and StopReplica, which the controller sends to brokers with ZooKeeper."""
    request = request_of(exchange)
    if response_of(exchange).get("errorCode"):
        return
    if request.get("controllerId", -1) >= 0:
        found = fields(id=request["controllerId"], epoch=request.get("controllerEpoch"))
        yield Statement("controller", (), found)
    places = []
    for broker in request.get("liveBrokers") or ():
        first = {"host": broker.get("v0Host"), "port": broker.get("v0Port")}
        for each in broker.get("endpoints") or (first,):
            if each.get("port") is None:
                continue  # the message breaks off before it
            place = broker.get("id", -1), each.get("host") or "", each["port"]
            places.append(place)
            found = fields(rack=broker.get("rack"), listener=each.get("listener"))
            yield Statement("endpoint", place, found)
    if places and not _is_cut(exchange.request):
        yield Statement("listing", (), fields(nodes=tuple(sorted(places))))
    for topic in request.get("topicStates") or ():
        for each in topic.get("partitionStates") or ():
            yield from _state(labels, topic.get("topicName"), real_id(topic.get("topicId")), each)
    for each in request.get("ungroupedPartitionStates") or ():
        yield from _state(labels, each.get("topicName"), None, each)


def _state(labels: Labels, name: str | None, topic_id: str | None, each: Body) -> Told:
    if not name:
        return
    label = labels.topic(name, None)
    if each.get("leader") == DELETED or each.get("leaderEpoch") == DELETED:
        yield Statement("topic", (label,), fields(is_there=False, is_deleted=True))
        return
    if "leader" not in each:  # StopReplica
        return
    yield Statement(
        "topic", (label,), fields(is_there=True, topic_id=topic_id, is_made=each.get("isNew") or None)
    )
    found = partition_fields(each, leader="leader", replicas="replicas", isr="isr", topic_id=topic_id)
    yield Statement("partition", (label, each.get("partitionIndex")), found)


def _registered(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    node = request.get("brokerId", request.get("controllerId"))
    error = response.get("errorCode")
    if request.get("clusterId"):
        yield Statement("cluster", (), fields(id=request["clusterId"]))
    if error == DUPLICATE_REGISTRATION:
        yield Statement("refused", (node,), fields(error="DUPLICATE_BROKER_REGISTRATION"))
    if error != 0:
        return
    epoch = response.get("brokerEpoch", -1)
    if epoch >= 0:
        yield Statement("node", (node,), fields(is_there=True, epoch=epoch, is_registered=True))
    for each in request.get("listeners") or ():
        found = fields(rack=request.get("rack"), listener=each.get("name"))
        if each.get("port") is not None:
            yield Statement("endpoint", (node, each.get("host"), each["port"]), found)


def _heartbeat(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    if response.get("errorCode") == 0:
        found = fields(
            fenced=response.get("isFenced"),
            epoch=request.get("brokerEpoch"),
            wants_fence=bool(request.get("wantFence")) or None,
            is_stopping=bool(request.get("wantShutDown") or response.get("shouldShutDown")) or None,
            offline_dirs=len(request.get("offlineLogDirs") or ()) or None,
        )
        yield Statement("node", (request.get("brokerId"),), found)


def _unregistered(exchange: Exchange, labels: Labels) -> Told:
    if response_of(exchange).get("errorCode") == 0:
        yield Statement(
            "node", (request_of(exchange).get("brokerId"),), fields(is_there=False), who(exchange)
        )


def _stopping(exchange: Exchange, labels: Labels) -> Told:
    if accepted(response_of(exchange)):
        yield Statement("node", (request_of(exchange).get("brokerId"),), fields(is_stopping=True))


def _controller(leader: Body) -> Statement:
    return Statement("controller", (), fields(id=leader.get("leaderId"), epoch=leader.get("leaderEpoch")))


def _metadata_partitions(body: Body) -> list[Body]:
    """What a body says of the log of metadata, which has one partition."""
    return [
        each
        for topic in body.get("topics") or ()
        if is_metadata_topic(topic.get("topicName"))
        for each in topic.get("partitions") or ()
    ]


def _quorum(exchange: Exchange, labels: Labels) -> Told:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch and DescribeQuorum."""
    request, response = request_of(exchange), response_of(exchange)
    if request.get("clusterId"):
        yield Statement("cluster", (), fields(id=request["clusterId"]))
    for each in _metadata_partitions(response):
        if each.get("leaderId", -1) >= 0:
            yield _controller(each)
    is_done = accepted(response) and not any(each.get("errorCode") for each in _metadata_partitions(response))
    for each in _metadata_partitions(request) if is_done else ():
        if exchange.api == "BeginQuorumEpoch" and each.get("leaderId", -1) >= 0:
            yield _controller(each)
        elif exchange.api == "EndQuorumEpoch":
            yield Statement("controller", (), fields(id=-1, epoch=each.get("leaderEpoch")))
    for node in response.get("nodes") or ():
        for each in node.get("listeners") or ():
            found = fields(listener=each.get("name"))
            yield Statement("endpoint", (node.get("nodeId"), each.get("host"), each.get("port")), found)
    for node in response.get("nodeEndpoints") or ():
        yield Statement("endpoint", (node.get("nodeId"), node.get("host"), node.get("port")), ())


_TELLERS: dict[str, Callable[[Exchange, Labels], Told]] = {
    "Metadata": _metadata,
    "DescribeTopicPartitions": _described_topics,
    "DescribeCluster": _described_cluster,
    "FindCoordinator": _coordinator,
    "ApiVersions": _offers,
    "CreateTopics": _created,
    "DeleteTopics": _deleted,
    "CreatePartitions": _more_partitions,
    "ElectLeaders": _elected,
    "AlterPartitionReassignments": _reassigned,
    "AlterPartition": _isr_altered,
    "LeaderAndIsr": _states,
    "UpdateMetadata": _states,
    "StopReplica": _states,
    "BrokerRegistration": _registered,
    "ControllerRegistration": _registered,
    "BrokerHeartbeat": _heartbeat,
    "UnregisterBroker": _unregistered,
    "ControlledShutdown": _stopping,
    "Vote": _quorum,
    "BeginQuorumEpoch": _quorum,
    "EndQuorumEpoch": _quorum,
    "DescribeQuorum": _quorum,
}

TELLING = frozenset((*LED, *SETTINGS, *_TELLERS))
"""APIs that may tell something."""
